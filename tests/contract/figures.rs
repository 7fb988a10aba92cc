//! The figures of the README and the guides against those that `lab/prove` and `benches/run` wrote. The Spanish README is
//! compared with the English one in docs.rs.

use std::collections::BTreeSet;

use crate::docs::{anchors, documents};
use crate::support::*;

/// The number at the start of a text, without the separators of thousands, or a version.
fn number(text: &str) -> String {
    let end = text.find(|c: char| !c.is_ascii_digit() && !".,".contains(c));
    let number = text[..end.unwrap_or(text.len())].trim_end_matches(['.', ',']);
    number.replace(',', "")
}

/// All numbers in a text.
fn numbers(text: &str) -> BTreeSet<String> {
    let starts = text.match_indices(|c: char| c.is_ascii_digit());
    let starts = starts
        .filter(|(at, _)| !text[..*at].ends_with(|c: char| c.is_ascii_digit() || ".,".contains(c)));
    starts.map(|(at, _)| number(&text[at..])).collect()
}

/// The numbers in a section of tests/results.md, and the sums of the faults and the power cuts in it.
fn numbers_of_results(section: &str) -> BTreeSet<String> {
    let parsed = |text: &str| number(text).parse::<usize>().ok();
    let after = |name| section.split(name).skip(1).filter_map(parsed);
    let faults: usize = after("kills: ").chain(after("errors: ")).sum();
    let lines = section
        .lines()
        .filter(|line| line.ends_with(" states, 0 lost, 0 torn"));
    let power_cuts: usize = lines.filter_map(parsed).sum();
    let sums = [faults.to_string(), power_cuts.to_string()];
    numbers(section).into_iter().chain(sums).collect()
}

/// The older versions that the figures of a section are of.
fn older_versions(section: &str) -> BTreeSet<String> {
    let versions = section.split("` (").skip(1).map(number);
    let current = env!("CARGO_PKG_VERSION").trim_end_matches("-dev");
    let versions = versions.filter(|version| version.matches('.').count() == 2);
    versions.filter(|version| version != current).collect()
}

/// Each row of a table that links to sections of tests/results.md, with the sections.
fn rows_beside_results(text: &str) -> Vec<(&str, String)> {
    let results = text_of("tests/results.md");
    let sections: Vec<&str> = results.split("\n#").skip(1).collect();
    let section_of = |link: &String| {
        let (_, anchor) = link.split_once("tests/results.md#")?;
        let mut sections = sections.iter();
        sections.find(|section| {
            anchors(&format!("#{}", section.lines().next().unwrap())).contains(anchor)
        })
    };
    let rows = text.lines().filter(|line| line.starts_with('|'));
    let rows = rows.map(|row| {
        let links = relative_links(row);
        let linked: String = links.iter().filter_map(section_of).copied().collect();
        (row, linked)
    });
    rows.filter(|(_, linked)| !linked.is_empty()).collect()
}

/// Those of tables. Figures of an older version are beside its number.
#[test]
fn figures_beside_a_link_to_results_are_theirs_and_of_the_version_that_is_named() {
    let mut documents = documents();
    documents.retain(|path, _| !path.starts_with("docs/es") && !path.ends_with("README.es.md"));
    let texts = documents.values();
    let rows: Vec<_> = texts.flat_map(|text| rows_beside_results(text)).collect();
    for (row, results) in &rows {
        let known = numbers_of_results(results);
        let shown = numbers(row);
        assert!(shown.is_subset(&known), "{row}: {:?}", &shown - &known);
        let older = older_versions(results);
        assert!(older.is_subset(&shown), "{row}: {:?}", &older - &shown);
    }
    assert!(rows.len() >= 3);
}

#[test]
fn bad_states_without_flushes_of_folders_in_the_readme_are_those_of_the_model() {
    let (readme, results) = (text_of("README.md"), text_of("tests/results.md"));
    let (_, line) = results
        .split_once("\npower cuts without the flush of folders: ")
        .unwrap();
    let (_, bad) = line.split_once(" states, at least ").unwrap();
    let sentence = format!(" {} of {} states ", number(bad), number(line));
    assert!(readme.contains(&sentence), "{sentence}");
}

/// The cells of the rows of a Markdown table below a heading.
fn table_below<'t>(text: &'t str, heading: &str) -> Vec<Vec<&'t str>> {
    let (_, below) = text.split_once(&format!("\n## {heading}\n")).unwrap();
    let rows = below.lines().skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    let cells = |row: &'t str| row.trim_matches('|').split('|').map(str::trim).collect();
    rows.map(cells).collect()
}

#[test]
fn speed_in_the_readme_is_that_of_the_benchmark() {
    let [readme, benchmark, results] =
        ["README.md", "benches/results.md", "tests/results.md"].map(text_of);
    let server = "Apache, prefork and mod_cgi";
    let [reads, saves] =
        ["reads", "saves"].map(|kind| table_below(&benchmark, &format!("{server}: {kind}")));
    let median = |table: &[Vec<&str>], name: &str, column: usize| -> Option<f64> {
        let row = table.iter().find(|row| row[0] == name)?;
        row[column].parse().ok()
    };
    // Reads, and then saves, each by 1 and by 8 clients
    let medians = |name: &str| {
        [(&reads, 1), (&reads, 5), (&saves, 1), (&saves, 5)]
            .map(|(table, column)| median(table, name, column))
    };
    let mod_php = medians("mod_php + opcache");
    let rows = table_below(&readme, "Speed");
    for row in &rows {
        let measured = medians(row[0]);
        for (column, cell) in row[1..].iter().enumerate() {
            let shown: Option<f64> = cell.trim_matches('*').parse().ok();
            assert!(
                shown.is_none() || shown == measured[column],
                "{row:?}: {measured:?}"
            );
            let is_bold = cell.starts_with('*');
            assert_eq!(
                is_bold,
                shown > mod_php[column],
                "{row:?}: slower than mod_php"
            );
        }
    }
    assert_eq!(rows.len(), 7);
    let (_, system) = benchmark.split_once("\n| comedor | commit ").unwrap();
    let commit = &system[..7];
    let [speed, proved] =
        [readme, results].map(|text| text.split_once("\n## Speed\n").unwrap().1.to_owned());
    assert!(
        speed.contains(commit) && proved.contains(commit),
        "{commit}"
    );
    for version in older_versions(&proved) {
        assert!(speed.contains(&version), "{version}");
    }
}
