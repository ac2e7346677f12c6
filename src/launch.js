#!/usr/bin/env node
/** What `console-gateway` runs. */
import './node-version.js'

const { main } = await import('./main.ts')
await main(process.argv.slice(2))
