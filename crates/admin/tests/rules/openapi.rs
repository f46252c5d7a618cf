//! docs/openapi.yaml says what is there, and what is answered.

use admin::status::{BudgetStatus, GuardStatus, RefusedStatus};

use super::*;

const DESCRIPTION: &str = include_str!("../../../../docs/openapi.yaml");
const ROUTER: &str = include_str!("../../src/lib.rs");

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

fn description() -> Value {
    serde_yaml::from_str(DESCRIPTION).unwrap()
}

#[test]
fn every_path_is_described_and_no_other() {
    let description = description();
    let described: Vec<&String> = description["paths"].as_object().unwrap().keys().collect();
    let mut routed: Vec<String> = ROUTER
        .split("\"/api/v1/")
        .skip(1)
        .map(|rest| format!("/api/v1/{}", rest.split('"').next().unwrap()))
        .map(|path| path.replace("{*", "{"))
        .collect();
    routed.sort();
    let mut sorted = described.clone();
    sorted.sort();
    assert_eq!(sorted, routed.iter().collect::<Vec<_>>());
}

#[tokio::test]
async fn every_method_is_described_and_no_other() {
    let door = open(FILE);
    for (path, item) in description()["paths"].as_object().unwrap() {
        for method in METHODS {
            let path = path.replace("{name}", "runtime:nobody");
            // It has no end of its own.
            let path = path.replace("/events", "/events?frames=0");
            let answer = door.say(&method.to_uppercase(), &path, "", b"").await;
            let is_described = item.get(method).is_some();
            assert_eq!(answer.status != 405, is_described, "{method} {path}: {answer:?}");
            if is_described {
                let status = answer.status.to_string();
                assert!(
                    item[method]["responses"].get(&status).is_some(),
                    "{method} {path} {status}"
                );
            }
        }
    }
}

#[tokio::test]
async fn answers_have_the_keys_and_types_that_are_described() {
    let door = open(FILE);
    let made = door.post(&json!({"app": "etl", "effect": "throttle", "ratio": 0.9})).await;
    let no_token = open(&FILE.replace("loopback_changes: true", ""));
    for (answer, schema) in [
        (made, "Changed"),
        (door.get("/api/v1/rules").await, "Rules"),
        (door.get("/api/v1/access").await, "Access"),
        (door.get("/api/v1/apps").await, "Apps"),
        (no_token.get("/api/v1/access").await, "Error"),
        (door.get("/api/v1/status").await, "Status"),
        (door.get("/api/v1/waiting").await, "Waiting"),
        (door.get("/api/v1/history").await, "History"),
        (door.get("/api/v1/why/etl").await, "WhyAnswer"),
        (door.get("/api/v1/history?since=yesterday").await, "Error"),
        (door.get("/api/v1/insights?by=app&compare=previous").await, "Insights"),
        (door.get("/api/v1/insights?by=zzz").await, "Error"),
        (door.delete("/api/v1/rules?app=etl").await, "Changed"),
        (door.delete("/api/v1/rules?app=etl").await, "Error"),
        (door.post(&json!({"x": 1})).await, "Error"),
        (door.get("/api/v1/nothing").await, "Error"),
        (door.get("/api/v1/status?limit=x").await, "Error"),
        (no_token.post(&json!({})).await, "Error"),
    ] {
        let described = json!({"$ref": format!("#/components/schemas/{schema}")});
        let mut faults = Vec::new();
        check(&answer.json(), &described, schema, &mut faults);
        assert_eq!(faults, [""; 0], "{answer:?}");
    }
    // Lists that are empty above.
    for (row, schema) in [
        (
            json!(RefusedStatus { budget: Some(String::new()), ..Default::default() }),
            "RefusedStatus",
        ),
        (json!(GuardStatus::default()), "GuardStatus"),
        (json!(BudgetStatus::default()), "BudgetStatus"),
    ] {
        let mut faults = Vec::new();
        check(
            &row,
            &json!({"$ref": format!("#/components/schemas/{schema}")}),
            schema,
            &mut faults,
        );
        assert_eq!(faults, [""; 0], "{row}");
    }
    // It can tell.
    let mut faults = Vec::new();
    let rules = json!({"now": 5, "rulez": []});
    check(&rules, &json!({"$ref": "#/components/schemas/Rules"}), "Rules", &mut faults);
    assert_eq!(faults.len(), 3, "{faults:?}");
}

/// The keys of a draft are those that are read.
#[tokio::test]
async fn a_draft_has_the_keys_that_are_described() {
    let answer = open(FILE).post(&json!({"zzz": 1})).await.json();
    let message = answer["faults"][0]["message"].as_str().unwrap();
    let mut known: Vec<&str> = message.split_once("known are ").unwrap().1.split(", ").collect();
    known.sort_unstable();
    let description = description();
    let properties = &description["components"]["schemas"]["Draft"]["properties"];
    let mut described: Vec<&String> = properties.as_object().unwrap().keys().collect();
    described.sort();
    assert_eq!(described, known);
}

/// Whoever misspells one is told those that there are: they are the described ones.
#[tokio::test]
async fn every_parameter_is_described_and_no_other() {
    let door = open(FILE);
    let description = description();
    let mut looked_at = 0;
    for (path, item) in description["paths"].as_object().unwrap() {
        for method in METHODS.into_iter().filter(|method| item.get(*method).is_some()) {
            let asked = format!("{}?zzz=1", path.replace("{name}", "runtime:nobody"));
            let answer = door.say(&method.to_uppercase(), &asked, "", b"").await;
            assert_eq!(answer.status, 400, "{method} {path}: {answer:?}");
            assert!(item[method]["responses"].get("400").is_some(), "{method} {path}");
            if method == "post" {
                continue;
            }
            let answer = answer.json();
            assert_eq!(answer["message"], "there is no parameter \"zzz\" here", "{path}");
            let told = answer["remedy"].as_str().unwrap().split_once(": ");
            let mut told: Vec<&str> = told.map_or(vec![], |(_, names)| names.split(", ").collect());
            let parameters = item[method]["parameters"].as_array().into_iter().flatten();
            let mut described: Vec<&str> = parameters
                .map(|given| match given.get("$ref").and_then(Value::as_str) {
                    Some(pointer) => description.pointer(pointer.trim_start_matches('#')).unwrap(),
                    None => given,
                })
                .filter(|parameter| parameter["in"] == "query")
                .map(|parameter| parameter["name"].as_str().unwrap())
                .collect();
            told.sort_unstable();
            described.sort_unstable();
            assert_eq!(told, described, "{method} {path}");
            looked_at += 1;
        }
    }
    assert!(looked_at > 10, "{looked_at}");
}

/// Notes where `value` is not as `schema` says: the part of JSON Schema that the file uses.
fn check(value: &Value, schema: &Value, at: &str, faults: &mut Vec<String>) {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let pointer = name.trim_start_matches('#');
        return check(value, description().pointer(pointer).expect(name), at, faults);
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    assert!(!types.is_empty(), "{at} is described without a type");
    if !types.iter().any(|kind| is_of_type(value, kind)) {
        faults.push(format!("{at} is {value}, not {types:?}"));
    }
    if let Some(known) = schema.get("enum").and_then(Value::as_array)
        && !known.contains(value)
    {
        faults.push(format!("{at} is {value}, not one of {known:?}"));
    }
    for (index, element) in value.as_array().into_iter().flatten().enumerate() {
        check(element, &schema["items"], &format!("{at}[{index}]"), faults);
    }
    let Some(object) = value.as_object() else { return };
    for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !object.contains_key(required) {
            faults.push(format!("{at} has no {required}"));
        }
    }
    for (key, value) in object {
        match schema["properties"].get(key) {
            Some(schema) => check(value, schema, &format!("{at}.{key}"), faults),
            None => faults.push(format!("{at}.{key} is not described")),
        }
    }
}

fn is_of_type(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("the type {other}"),
    }
}
