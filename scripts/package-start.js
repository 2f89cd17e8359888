#!/usr/bin/env node
// The command of the npm package, which package.ts gives the options of the real one. An older Node
// would fail at some import, with nothing that says why.
const version = process.versions.node
if (Number(version.split('.')[0]) < 22) {
  console.error(`lethe: This needs Node 22 or newer, and here is Node ${version}.`)
  process.exitCode = 1
} else {
  await import('./server/bin/lethe.js')
}
