// Bundles the page and writes it as a C++ source: node bundle.mjs <assets.cpp> [<folder>], the latter to look at the files.
import { build } from 'esbuild';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const [out, folder] = process.argv.slice(2);
const made = await build({
  entryPoints: { app: 'src/main.tsx' },
  bundle: true,
  minify: true,
  format: 'iife',
  target: ['es2020'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  outdir: 'out',
  entryNames: '[name]',
  write: false,
  define: { 'process.env.NODE_ENV': '"production"' },
});

const short = (content) => createHash('sha256').update(content).digest('hex').slice(0, 12);
const types = { js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8', svg: 'image/svg+xml', html: 'text/html; charset=utf-8' };
const assets = [];
const paths = {};
const add = (name, content) => {
  const [, stem, extension] = /^(.*)\.(\w+)$/.exec(name);
  paths[name] = `/assets/${stem}-${short(content)}.${extension}`;
  assets.push({ path: paths[name], type: types[extension], lasting: true, content });
};
for (const file of made.outputFiles) add(file.path.split('/').pop(), Buffer.from(file.contents));
add('icon.svg', readFileSync('src/icon.svg'));
const html = readFileSync('src/index.html', 'utf8').replace(/\{\{([\w.]+)\}\}/g, (_, name) => paths[name]);
assets.push({ path: '/', type: types.html, lasting: false, content: Buffer.from(html) });

// A literal of escapes only where they are needed: small to read for the compiler.
const literal = (content) => {
  let text = '"';
  let column = 0;
  for (const byte of content) {
    const plain = byte >= 32 && byte < 127 && byte !== 34 && byte !== 92 && byte !== 63;
    const piece = plain ? String.fromCharCode(byte) : '\\' + byte.toString(8).padStart(3, '0');
    text += piece;
    column += piece.length;
    if (column > 2000) {
      text += '"\n"';
      column = 0;
    }
  }
  return text + '"';
};

let source = '// Generated from apps/dashboard/page by its bundle.mjs.\n#include "dashboard/assets.hpp"\n\n';
source += 'namespace lockstep::dashboard {\n\nusing namespace std::string_view_literals;\n\nstd::span<asset const> assets() {\n';
source += '    static constexpr asset all[] = {\n';
for (const one of assets) {
  source += `{"${one.path}", "${one.type}", "\\"${short(one.content)}\\"", ${one.lasting},\n${literal(one.content)}sv},\n`;
}
source += '    };\n    return all;\n}\nstd::string_view missing_page_reason() { return {}; }\n\n}  // namespace lockstep::dashboard\n';
mkdirSync(dirname(out), { recursive: true });
writeFileSync(out, source);
if (folder) {
  for (const one of assets) {
    const path = join(folder, one.path === '/' ? 'index.html' : one.path);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, one.content);
  }
}
