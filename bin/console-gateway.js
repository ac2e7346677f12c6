#!/usr/bin/env node
// In an installation or a clone after `npm run build` the built program; in a clone without it the sources.
import { existsSync } from 'node:fs'

const built = new URL('../dist/launch.js', import.meta.url)
await import(existsSync(built) ? built.href : '../src/launch.js')
