#!/usr/bin/env node
/** The entry point of `console-gateway`. */
import './node-version.js'

// A folder of the package, not the system's temporary one, where anyone could put other code. If
// it cannot be written, nothing is cached.
const { enableCompileCache } = await import('node:module')
enableCompileCache(new URL('../node_modules/.cache/console-gateway', import.meta.url).pathname)

const { main } = await import('./cli/main.ts')
await main(process.argv.slice(2))
