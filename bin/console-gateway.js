#!/usr/bin/env node
// A clone runs its sources, so that what runs is never older than they are; an installation has `dist/` only.
import { existsSync } from 'node:fs'

const sources = new URL('../src/launch.js', import.meta.url)
await import(existsSync(sources) ? sources.href : '../dist/launch.js')
