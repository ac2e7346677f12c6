/** Faults that the gate of emitters (`emitters.ts`) has to see each time. Never runs itself. */
import { fork, spawn } from 'node:child_process'
import cluster from 'node:cluster'
import { EventEmitter } from 'node:events'
import { createReadStream, watch } from 'node:fs'
import { createServer, request } from 'node:http'
import { connect } from 'node:net'
import { PassThrough, pipeline, Readable, Transform } from 'node:stream'
import { Worker } from 'node:worker_threads'
import { createGunzip } from 'node:zlib'
import { Redis } from 'ioredis'
import pino from 'pino'
import { Pool } from 'undici'
import { adopt, pipe } from '../../src/observability/emitters.ts'

class Own extends EventEmitter {}

export const faults = () => [
  new Transform(), // fault
  new PassThrough().on('error', () => {}), // fault
  createReadStream('x'), // fault
  new Worker('x'), // fault
  spawn('node'), // fault
  fork('node'), // fault
  cluster.fork(), // fault
  watch('x'), // fault
  createServer(), // fault
  request('http://x'), // fault
  connect(1), // fault
  createGunzip(), // fault
  Readable.from([]), // fault
  new Redis(), // fault
  new Redis({ lazyConnect: true }).duplicate(), // fault
  new Pool('http://x'), // fault
  pino.destination(1), // fault
  new Own() // fault
]

export function joins(): void {
  const late = new Transform() // fault
  adopt(late)
  const piped = adopt(new PassThrough())
  piped.pipe(late) // fault
  pipeline(piped, late, () => {}) // fault
}

export function sound(): void {
  const from = adopt(createReadStream('x'))
  pipe(from, adopt(createGunzip())).on('data', () => {})
  made().once('close', () => {})
  adopt(new Own()).emit('x')
}

const made = () => adopt(new Transform())
