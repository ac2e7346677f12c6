/** What one client does on one connection: requests in pieces, pauses, and one of many ends. */
import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { createRandom, type Random, seedOf } from '../../support/random.ts'
import { makeRequest, mutate } from './grammar.ts'

type Step = { readonly send: Buffer } | { readonly pauseMs: number }

const ends = ['close', 'close', 'reset', 'reset', 'half-close', 'stall', 'linger'] as const

export type Conversation = ReturnType<typeof plan>

/** No connection stays longer than this. */
const longestMs = 2500

/**
 * @param number which one of the run; with the seed it says all
 * @param cookies of sessions that are open, as far as is known
 */
export function plan(seed: number, number: number, cookies: readonly string[]) {
  const random = createRandom(seedOf(seed, number))
  const requests = random.chance(0.7) ? 1 : random.integer(2, 5)
  const pieces = Array.from({ length: requests }, () => {
    const request = makeRequest(random, cookies)
    return random.chance(0.25) ? mutate(random, request) : request
  }).flat()
  return {
    number,
    from: `127.0.0.${random.integer(1, 12)}`,
    steps: stepsOf(random, random.chance(0.3) ? cutAnywhere(random, pieces) : pieces),
    end: random.chance(0.5) ? ('answers' as const) : random.pick(ends),
    /** It stops reading, so that answers back up. */
    isDeaf: random.chance(0.04),
    requests
  }
}

/** The client is gone after any byte. */
function cutAnywhere(random: Random, pieces: readonly Buffer[]): Buffer[] {
  let left = random.integer(1, Buffer.concat(pieces).length)
  return pieces.map(piece => {
    const kept = piece.subarray(0, Math.max(0, left))
    left -= piece.length
    return kept
  })
}

/** Some pieces leave together, some after a pause, some in two halves. */
function stepsOf(random: Random, pieces: readonly Buffer[]): Step[] {
  const isSlow = random.chance(0.4)
  return pieces.flatMap(piece => {
    const pauseMs = random.pick([0, 1, 5, 20, 60, 150, 300])
    const pause = isSlow && random.chance(0.6) ? [{ pauseMs }] : []
    if (!random.chance(0.1)) return [...pause, { send: piece }]
    const middle = random.integer(0, piece.length)
    const [first, second] = [piece.subarray(0, middle), piece.subarray(middle)]
    return [...pause, { send: first }, { pauseMs }, { send: second }]
  })
}

/** Plays a conversation; resolves once its connection is gone. */
export async function play(url: string, conversation: Conversation): Promise<void> {
  const { hostname, port } = new URL(url)
  const socket = connect({ port: Number(port), host: hostname, localAddress: conversation.from })
  const closed = new Promise<void>(resolve => socket.once('close', () => resolve()))
  let answers = 0
  socket.on('error', () => {})
  socket.on('data', chunk => {
    answers += chunk.toString('latin1').split('HTTP/1.1 ').length - 1
  })
  const limit = setTimeout(() => socket.destroy(), longestMs)
  if (conversation.isDeaf) socket.pause()
  for (const step of conversation.steps) {
    if (socket.destroyed) break
    if ('pauseMs' in step) await wait(step.pauseMs)
    else socket.write(step.send)
  }
  await endIt(socket, conversation, () => answers)
  await closed
  clearTimeout(limit)
}

async function endIt(
  socket: Socket,
  { end, requests, isDeaf }: Conversation,
  answers: () => number
) {
  // Bytes that are still here would be lost with the connection, and no byte is the last one sent.
  if (end !== 'stall' && socket.writableLength > 0 && !socket.destroyed) {
    await new Promise<void>(resolve => {
      socket.once('close', resolve)
      socket.write('', () => resolve())
    })
  }
  if (end === 'close') return void socket.destroy()
  if (end === 'reset') return void socket.resetAndDestroy()
  if (end === 'half-close') socket.end()
  if (end === 'linger') await wait(300)
  const patienceMs = isDeaf ? 1000 : 2000
  for (let waited = 0; waited < patienceMs && !socket.destroyed; waited += 10) {
    if (end !== 'stall' && answers() >= requests) break
    await wait(10)
  }
  socket.destroy()
}

/** One line for reports. */
export function describe({ number, steps, end, isDeaf }: Conversation): string {
  const sent = steps.flatMap(step => ('send' in step ? [step.send] : []))
  const bytes = Buffer.concat(sent)
  const text = JSON.stringify(bytes.subarray(0, 200).toString('latin1'))
  const more = bytes.length > 200 ? ` … ${bytes.length} bytes` : ''
  return `${number}: ${text}${more}, then ${end}${isDeaf ? ', reading nothing' : ''}`
}
