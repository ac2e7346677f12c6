/** What has to hold of a gateway after any attack, and before: rest, and the measures of rest. */
import { setTimeout as wait } from 'node:timers/promises'
import type { GatewayProcess, Samples } from '../../support/gateway-process.ts'

export type AtRest = Awaited<ReturnType<typeof atRest>>

/** Also for garbage that only another look finds: what is kept for a time is let go with it. */
const patienceMs = 30_000
const heapGrowth = 1.1
const perUser = 48

/** Counts of what is under way at the moment. */
const isUnderWay = (name: string) => /_in_flight$|_draining$|_queued$|_waiting$/.test(name)
/** Counts of what must never happen. */
const isFault = ({ name, labels }: Samples[number]) =>
  labels.includes('code="gateway.fault"') || /^console_gateway_.*(?:uncaught|unhandled)/.test(name)

const unexpected = ({ name, labels, value }: Samples[number]) =>
  `${name}${labels} is ${value}, expected 0`

/** Waits until nothing is under way and descriptors stay the same; and measures. */
export async function atRest(gateway: GatewayProcess) {
  await settles(gateway, 'nothing is in flight', async () => await underWay(gateway))
  const places = await settledDescriptors(gateway)
  const { memory, handles } = await gateway.collect()
  return {
    descriptors: sumOf(places),
    places,
    memory,
    /** Connections of clients that are long gone. */
    problems: leftOpen(handles)
  }
}

const sumOf = (counts: Readonly<Record<string, number>>) =>
  Object.values(counts).reduce((sum, count) => sum + count, 0)

/** A reload, and connections to back-ends, end a while later on a busy machine. */
async function settledDescriptors(gateway: GatewayProcess): Promise<Record<string, number>> {
  let last = gateway.descriptors()
  for (let same = 0; same < 20;) {
    await wait(100)
    const now = gateway.descriptors()
    same = sumOf(now) === sumOf(last) ? same + 1 : 0
    last = now
  }
  return last
}

/** Every client has closed its connection, so that whatever is open of them is open for good. */
function leftOpen(handles: readonly string[]): string[] {
  const open = handles.filter(handle => /^a client’s Socket \d+ → \d/.test(handle))
  return open.map(handle => `still open: ${handle}`)
}

/** @returns what is still wrong after all patience; nothing where all is well */
async function settles(
  gateway: GatewayProcess,
  what: string,
  wrong: () => Promise<string[]>
): Promise<string[]> {
  const giveUp = performance.now() + patienceMs
  for (;;) {
    const found = await wrong().catch((error: unknown) => [`${what}: ${String(error)}`])
    if (found.length === 0 || performance.now() > giveUp || gateway.isOver()) {
      return found
    }
    await wait(200)
  }
}

async function underWay(gateway: GatewayProcess): Promise<string[]> {
  const samples = await gateway.samples()
  if (samples.length === 0) return ['there are no metrics']
  return samples.filter(({ name, value }) => isUnderWay(name) && value !== 0).map(unexpected)
}

/** Everything that is wrong. The surroundings are healed, no client is connected. */
export async function judge(gateway: GatewayProcess, before: AtRest): Promise<string[]> {
  if (gateway.isOver()) return [`the process ended: ${JSON.stringify(await gateway.ended)}`]
  const problems = [
    ...(await settles(gateway, 'in-flight counts', async () => await underWay(gateway))),
    ...(await freshRequests(gateway)),
    ...(await settles(gateway, 'descriptors', async () => await descriptors(gateway, before))),
    ...(await settles(gateway, 'heap', async () => await heap(gateway, before))),
    ...(await gateway.samples())
      .filter(sample => isFault(sample) && sample.value !== 0)
      .map(unexpected),
    ...gateway
      .complaints()
      .slice(0, 5)
      .map(line => `on standard error: ${line}`)
  ]
  const { pid } = (await gateway.ask('/ops/api/status')).json
  if (pid !== gateway.pid) problems.push(`process ${pid} answers, not ${gateway.pid}`)
  return problems
}

async function descriptors(gateway: GatewayProcess, before: AtRest): Promise<string[]> {
  const places = await settledDescriptors(gateway)
  if (sumOf(places) === before.descriptors) return []
  const changed = Object.keys({ ...before.places, ...places })
    .filter(place => places[place] !== before.places[place])
    .map(place => `${place}: ${before.places[place] ?? 0} → ${places[place] ?? 0}`)
  const { handles } = await gateway.collect()
  return [
    `${sumOf(places)} descriptors, ${before.descriptors} before: ${changed.join('; ')}`,
    `open are: ${handles.join('; ')}`
  ]
}

async function heap(gateway: GatewayProcess, before: AtRest): Promise<string[]> {
  const {
    memory: { heapUsed }
  } = await gateway.collect()
  const growth = heapUsed / before.memory.heapUsed
  return growth <= heapGrowth ? [] : [`the heap grew ${before.memory.heapUsed} → ${heapUsed} bytes`]
}

/** A new client signs in, and all that one user may have in flight is answered. */
async function freshRequests(gateway: GatewayProcess): Promise<string[]> {
  return await settles(gateway, 'fresh requests', async () => {
    const cookie = await gateway.signIn()
    const statusOf = async (path: string) => await gateway.status(path, { cookie })
    const paths = ['/api/steady/1', '/api/faulty/1', '/api/fickle/1', '/api/account/profile', '/']
    for (const path of paths) {
      const status = await statusOf(path)
      if (status !== 200) return [`a fresh request of ${path} is answered ${status}`]
    }
    const all = Array.from({ length: perUser }, async () => await statusOf('/api/steady/1'))
    const odd = (await Promise.all(all)).filter(status => status !== 200)
    return odd.length === 0 ? [] : [`of ${perUser} requests at once: ${odd.join()}`]
  })
}
