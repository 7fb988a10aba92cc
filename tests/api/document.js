// Lints openapi.yaml by Redocly's recommended rules. Prints what they find and fails, or prints the
// document as JSON with every $ref followed.
import { bundle, createConfig, formatProblems, getTotals, lint } from "@redocly/openapi-core";
import { exit } from "node:process";
import { fileURLToPath } from "node:url";

const ref = fileURLToPath(new URL("../../openapi.yaml", import.meta.url));
const config = await createConfig({
  extends: ["recommended-strict"],
  rules: {
    // Examples are checked everywhere, which is not among the recommended.
    "no-invalid-parameter-examples": "error",
    "no-invalid-schema-examples": "error",
    // The project has no licence that it could name.
    "info-license": "off",
    // Nothing refers to the schema Actions: it is there for the types of clients and for the tests.
    "no-unused-components": "off",
  },
});
const problems = await lint({ ref, config });
if (problems.length > 0) {
  formatProblems(problems, { totals: getTotals(problems), version: "" });
  exit(1);
}
const { bundle: document } = await bundle({ ref, config, dereference: true });
console.log(JSON.stringify(document.parsed));
