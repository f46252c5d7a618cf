use sql::{Charset, Routine, RoutineKind, Server, Setting};

use super::*;

const SERVER: &str = "127.0.0.1:3306";

fn policy(primary: &str, probe: &str) -> Arc<ClusterPolicy> {
    let text = format!(
        "version: 1\nadmin: {{ listen: 127.0.0.1:9307 }}\nclusters:\n  main:\n    \
         listen: 127.0.0.1:3307\n    primary: {primary}\n    {probe}\n    \
         signals: {{ lag: {{ threshold: 1s }} }}\nrules: []\n"
    );
    policy::load(&text).unwrap().clusters.first().unwrap().clone()
}

fn probed(primary: &str) -> Arc<ClusterPolicy> {
    policy(primary, "probe: { user: sluice, password_env: P }")
}

fn board() -> Arc<FactsBoard> {
    Arc::new(FactsBoard::new(&probed(SERVER)))
}

/// One function that writes nothing.
fn facts() -> ServerFacts {
    let row = Routine {
        kind: RoutineKind::Function,
        schema: b"a",
        name: b"f",
        body: Some(b"RETURN 1"),
        sql_mode: b"",
    };
    let routines = Routines::read(Server::MySql { version: 90_704 }, [row]);
    assert_eq!(routines.len(), 1);
    ServerFacts { routines, ansi_quotes: Setting::Off, charset_client: Charset::Plain }
}

fn shown(board: &FactsBoard) -> ServerFacts {
    board.newer(&board.nothing(), SERVER).unwrap().facts.clone()
}

#[tokio::test(start_paused = true)]
async fn a_list_that_was_read_before_a_change_has_ended_is_not_shown() {
    let board = board();
    let before = board.begin_reading();
    board.publish(SERVER, before, facts());
    assert_eq!(shown(&board), facts());
    let change = board.begin_change();
    let emptied = ServerFacts { routines: Routines::default(), ..facts() };
    assert_eq!(shown(&board), emptied, "before it is sent");
    assert_eq!(board.begin_reading(), None);
    board.publish(SERVER, before, facts());
    assert_eq!(shown(&board), emptied);
    let other = board.begin_change();
    change.end();
    assert_eq!(board.begin_reading(), None, "another is under way");
    other.end();
    board.publish(SERVER, before, facts());
    assert_eq!(shown(&board), emptied, "it may have been read in the middle");
    board.publish(SERVER, board.begin_reading(), facts());
    assert_eq!(shown(&board), facts());
}

#[tokio::test(start_paused = true)]
async fn a_change_whose_connection_is_gone_may_go_on_for_a_while() {
    let board = board();
    drop(board.begin_change());
    assert_eq!(board.begin_reading(), None);
    board.begin_change().end();
    assert_eq!(board.begin_reading(), None);
    tokio::time::advance(ABANDONED).await;
    assert!(board.begin_reading().is_some());
}

#[test]
fn what_is_known_of_one_server_says_nothing_of_another() {
    let board = board();
    assert_eq!(shown(&board), ServerFacts::default(), "nothing yet");
    board.publish(SERVER, board.begin_reading(), facts());
    let mine = board.newer(&board.nothing(), SERVER).unwrap();
    assert!(board.newer(&mine, SERVER).is_none(), "nothing new");
    board.follow(&probed(SERVER), &probed("127.0.0.1:3316"));
    board.publish(SERVER, board.begin_reading(), facts());
    let mine = board.newer(&mine, SERVER).unwrap();
    assert_eq!(mine.facts, ServerFacts::default());
    assert!(board.newer(&mine, SERVER).is_none());
    let other = board.newer(&mine, "127.0.0.1:3316").unwrap();
    assert_eq!(other.facts, ServerFacts::default());
}

#[test]
fn a_server_that_nobody_asks_is_taken_for_one_with_the_usual_quotes() {
    let board = FactsBoard::new(&policy(SERVER, ""));
    assert_eq!(shown(&board), ServerFacts::unasked());
    board.follow(&policy(SERVER, ""), &probed(SERVER));
    assert_eq!(shown(&board), ServerFacts::default());
}
