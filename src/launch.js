#!/usr/bin/env node
/** What `console-gateway` runs. */
import './node-version.js'

// Its own folder, not the system's for temporary files, where anyone could leave other code. Where it cannot be written nothing is kept.
const { enableCompileCache } = await import('node:module')
enableCompileCache(new URL('../node_modules/.cache/console-gateway', import.meta.url).pathname)

const { main } = await import('./cli/main.ts')
await main(process.argv.slice(2))
