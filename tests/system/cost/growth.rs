//! How the cost of a request grows with the data of a school.

use super::{cost, get_menu, save_menu, school_with_a_menu};
use crate::support::*;

/// The costs of a read and a write.
fn costs(school: &School) -> [(u64, u64); 2] {
    [get_menu(school), save_menu(school)].map(|request| cost(&request))
}

#[test]
fn cost_is_independent_of_the_number_of_days() {
    let school = school_with_a_menu();
    let day = school.read(DAY);
    let with_one = costs(&school);
    for n in 1..10_000 {
        let (year, month, day_of_month) = (1990 + n / 336, n / 28 % 12 + 1, n % 28 + 1);
        let folder = format!("aula1/Comedor/{year}-{month:02}/{day_of_month:02}");
        school.write(&format!("{folder}/_datos.json"), &day);
    }
    let with_many = costs(&school);
    println!("10,000 days: {with_many:?}, with one {with_one:?}");
    for ((many, many_calls), (one, one_calls)) in with_many.into_iter().zip(with_one) {
        assert!(
            many < one + one / 100,
            "{many} instructions, with one {one}"
        );
        assert_eq!(many_calls, one_calls);
    }
}

/// Checks that instructions grow linearly with `sizes`, by at most `steepest` per unit. System calls
/// may only grow by those that allocate memory, in blocks of increasing size.
#[track_caller]
fn assert_linear(what: &str, sizes: [u64; 3], costs: [(u64, u64); 3], steepest: f64) {
    let slope = |from: usize, to: usize| {
        (costs[to].0 - costs[from].0) as f64 / (sizes[to] - sizes[from]) as f64
    };
    println!(
        "{what}: {sizes:?}, {costs:?}, {:.1} and {:.1} per unit",
        slope(0, 1),
        slope(1, 2)
    );
    assert!(
        slope(1, 2) <= slope(0, 1) * 1.1,
        "{what}: faster than linear"
    );
    assert!(slope(1, 2) <= steepest, "{what}: {}", slope(1, 2));
    assert!(costs[2].1 <= costs[0].1 + 30, "{what}: system calls");
}

#[test]
fn cost_is_linear_in_the_number_of_menu_types() {
    let sizes = [1, 30, 300];
    let costs = sizes.map(|size| {
        let school = School::new();
        let others = (1..size).map(|n| format!("type-{n:03}"));
        let types = others.chain(["basal".to_owned()]);
        let types = types.map(|id| json!({"id": id, "label": "Menú", "color": "#0d6efd"}));
        school.write(TYPES, Value::from_iter(types).to_string());
        save_menu(&school).run().ok();
        self::costs(&school)
    });
    assert_linear(
        "reads, by menu types",
        sizes,
        costs.map(|[read, _]| read),
        9_000.,
    );
    assert_linear(
        "writes, by menu types",
        sizes,
        costs.map(|[_, write]| write),
        9_000.,
    );
}

#[test]
fn cost_is_linear_in_the_size_of_the_session() {
    let school = school_with_a_menu();
    let sizes = [1, 100, 10 * 1024].map(|kib| kib * 1024);
    let costs = sizes.map(|size| {
        let (mut count, mut items) = (0, String::new());
        while (items.len() as u64) < size {
            let item = "s:2:\"id\";i:7;s:4:\"name\";s:12:\"Lentejas 1kg\";";
            items += &format!("i:{count};a:2:{{{item}}}");
            count += 1;
        }
        let basket = format!("basket|a:{count}:{{{items}}}");
        school.log_in("teacher", basket + &session(TEACHER));
        cost(&get_menu(&school))
    });
    assert_linear("reads, by bytes of session", sizes, costs, 60.);
}

/// They are compared with each other: PHP never writes one twice.
#[test]
fn cost_is_linear_in_the_number_of_keys_in_the_session() {
    let school = school_with_a_menu();
    let sizes = [1_000, 10_000, 100_000];
    // In no order, which would make a sort cheap
    let keys = |count: u64| (0..count).map(move |n| format!("key{:07}", n * 7919 % count));
    let variables = |count| keys(count).map(|key| format!("{key}|N;")).collect();
    let array = |count| {
        let items: String = keys(count)
            .map(|key| format!("s:10:\"{key}\";N;"))
            .collect();
        format!("basket|a:{count}:{{{items}}}")
    };
    for (what, content) in [
        ("variables", &variables as &dyn Fn(u64) -> String),
        ("keys of an array", &array),
    ] {
        let costs = sizes.map(|size| {
            school.log_in("teacher", content(size) + &session(TEACHER));
            cost(&get_menu(&school))
        });
        assert_linear(&format!("reads, by {what}"), sizes, costs, 2_000.);
    }
}
