// Lints openapi.yaml, and the document with its `x-exact` applied, with Redocly's recommended rules. On problems, prints
// them and fails; otherwise prints the exact document as JSON, with `--dereference` with every $ref resolved.
import { bundleFromString, createConfig, formatProblems, getTotals, lintFromString, parseYaml } from "@redocly/openapi-core";
import { readFileSync } from "node:fs";
import { argv, exit } from "node:process";

const config = await createConfig({
  extends: ["recommended-strict"],
  rules: {
    // Check all examples; the recommended rules do not.
    "no-invalid-parameter-examples": "error",
    "no-invalid-schema-examples": "error",
    // The project has no licence that it could name.
    "info-license": "off",
  },
});

async function lint(source) {
  const problems = await lintFromString({ source, config });
  if (problems.length === 0) return;
  formatProblems(problems, { totals: getTotals(problems), version: "" });
  exit(1);
}

/** A JSON Merge Patch (RFC 7396). */
function patch(target, changes) {
  if (!isObject(changes)) return changes;
  const result = isObject(target) ? { ...target } : {};
  for (const [key, change] of Object.entries(changes)) {
    if (change === null) delete result[key];
    else result[key] = patch(result[key], change);
  }
  return result;
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function exact(value) {
  if (Array.isArray(value)) return value.map(exact);
  if (!isObject(value)) return value;
  const { "x-exact": changes = {}, ...rest } = value;
  return Object.fromEntries(Object.entries(patch(rest, changes)).map(([key, inner]) => [key, exact(inner)]));
}

const text = readFileSync(new URL("../../../openapi.yaml", import.meta.url), "utf8");
await lint(text);
const source = JSON.stringify(exact(parseYaml(text)));
await lint(source);
const { bundle } = await bundleFromString({ source, config, dereference: argv.includes("--dereference") });
console.log(JSON.stringify(bundle.parsed));
