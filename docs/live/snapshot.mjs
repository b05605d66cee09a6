// node snapshot.mjs FROM ARCHIVE CODE TO: a Python with the memory FROM runs CODE; its memory goes to TO.
// FROM, if not empty, is what an earlier run wrote. ARCHIVE, if not empty, is a zip of packages for its
// path; CODE may change it.
import { readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { snapshot, startPython } from "./python.mjs";

const [from, archive, code, to] = process.argv.slice(2);
const python = await startPython(
  from ? gunzipSync(readFileSync(from)) : undefined,
  archive ? { [basename(archive)]: readFileSync(archive) } : {},
  { _makeSnapshot: true },
);
python.runPython(code);
writeFileSync(to, gzipSync(snapshot(python)));
if (archive) writeFileSync(archive, python.FS.readFile(`/lib/${basename(archive)}`));
