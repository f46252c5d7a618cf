//! Two budgets that meet the same statements, whatever comes.

use proptest::prelude::*;

use super::*;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever meets two budgets, never exceeds either; nobody is lost, and nothing stays taken.
    #[test]
    fn two_budgets_at_once_never_exceed_either(
        limits in (1_u32..5, 1_u32..5),
        rate in prop::option::of(5.0_f64..200.0),
        sessions in prop::collection::vec((0_u64..6, 0_usize..3, any::<bool>(), 1_u64..60), 2..24),
        shuts in prop::collection::vec((1_u64..400, any::<bool>()), 0..8),
        leaves in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        let a = BudgetTerms { rate, ..at_once(limits.0) };
        let mut world = World::new(&[(A, a), (B, at_once(limits.1))]);
        for (identity, which, gated, takes) in sessions {
            let budgets: &[BudgetKey] = match which { 0 => &[A], 1 => &[B], _ => &[A, B] };
            let session = world.session(identity, budgets, (takes, takes + 5));
            world.sessions[session].gated = gated;
            world.sessions[session].left = 6;
            world.sessions[session].request.terms.max_delay = Duration::from_secs(86_400);
        }
        world.all_ask();
        let mut leaves = leaves.into_iter();
        for (time, shut) in shuts {
            world.run(ms(time));
            let lag = Sample::Value(if shut { 9.0 } else { 0.0 });
            world.lab.controller.handle_sample(world.lab.now, LAG, lag);
            world.collect();
            if let Some(leaves) = leaves.next()
                && !world.waiting.is_empty()
            {
                let mut tickets: Vec<Ticket> = world.waiting.keys().copied().collect();
                tickets.sort_unstable();
                let ticket = *leaves.get(&tickets);
                world.waiting.remove(&ticket);
                world.lab.controller.cancel(world.lab.now, ticket);
            }
        }
        world.lab.controller.handle_sample(world.lab.now, LAG, Sample::Value(0.0));
        world.collect();
        world.run(Duration::from_secs(600));
        prop_assert!(world.waiting.is_empty() && world.running.is_empty(), "all are over");
        prop_assert!(world.refused.is_empty());
        for (budget, limit) in [(A, limits.0), (B, limits.1)] {
            let most = world.most.get(&budget).copied().unwrap_or(0);
            prop_assert!(most <= usize::try_from(limit).unwrap(), "{most} of {limit}");
            prop_assert_eq!(world.in_use(budget), 0);
        }
        prop_assert_eq!(world.lab.controller.in_flight(), 0);
        prop_assert_eq!(world.lab.controller.waiting_len(), 0);
        if let Some(rate) = rate {
            let began: Vec<MonoTime> = world.work.iter()
                .filter(|(_, _, set)| set.iter().any(|at| at.budget == A))
                .map(|(at, ..)| *at).collect();
            for (n, from) in began.iter().enumerate() {
                for (more, to) in began[n..].iter().enumerate() {
                    let time = to.saturating_since(*from).as_secs_f64();
                    let most = rate * time + (rate * 0.05).max(1.0) + 1.0;
                    let more = f64::from(u32::try_from(more).unwrap());
                    prop_assert!(more <= most, "{more} in {time} s at {rate}");
                }
            }
        }
    }
}
