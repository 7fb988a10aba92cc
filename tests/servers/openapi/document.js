// Lints openapi.yaml, and the exact document, with Redocly's recommended rules. On problems, prints them and fails; otherwise
// prints the exact document as JSON, with `--dereference` with every $ref resolved.
import { bundleFromString, createConfig, formatProblems, getTotals, lintFromString, parseYaml } from "@redocly/openapi-core";
import { readFileSync } from "node:fs";
import { argv, exit } from "node:process";

const config = await createConfig({
  extends: ["recommended-strict"],
  rules: {
    // Check all examples; the recommended rules do not.
    "no-invalid-parameter-examples": "error",
    "no-invalid-schema-examples": "error",
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

/** The value, whose lists that a later version may extend are enumerations: this version has no other code or reason. */
function closed(value) {
  if (Array.isArray(value)) return value.map(closed);
  if (!isObject(value)) return value;
  const result = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, closed(inner)]));
  const { "x-extensible-enum": known } = value;
  return known ? { ...result, enum: known } : result;
}

/** The operations of a path. Reads are accepted by POST, with its body ignored, and by HEAD. */
function withAllMethods({ get, ...others }) {
  if (!get) return others;
  const head = Object.keys(get.responses).map(status => [status, { $ref: "#/components/responses/Head" }]);
  return {
    get,
    post: { ...get, operationId: `${get.operationId}ByPost` },
    head: { ...get, operationId: `${get.operationId}Head`, "x-codes": undefined, responses: Object.fromEntries(head) },
  };
}

function exact(published, changes) {
  const document = closed(patch(published, changes));
  const paths = Object.entries(document.paths).map(([path, operations]) => [path, withAllMethods(operations)]);
  return { ...document, paths: Object.fromEntries(paths) };
}

function read(path) {
  return readFileSync(new URL(path, import.meta.url), "utf8");
}

const text = read("../../../openapi.yaml");
await lint(text);
const source = JSON.stringify(exact(parseYaml(text), parseYaml(read("exact.yaml"))));
await lint(source);
const { bundle } = await bundleFromString({ source, config, dereference: argv.includes("--dereference") });
console.log(JSON.stringify(bundle.parsed));
