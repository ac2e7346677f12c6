/** `npm run bench:profile`: where the gateway and the bare plugin spend their time, by function. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { Flame, type Frame } from './flame.ts'
import { preparePlace } from './place.ts'
import { prepare } from './prepare.ts'
import { startSubject, type SubjectName, titles } from './subjects.ts'

interface Profile {
  readonly nodes: ReadonlyArray<{
    readonly id: number
    readonly children?: readonly number[]
    readonly callFrame: {
      readonly functionName: string
      readonly url: string
      readonly lineNumber: number
    }
  }>
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

const { values: given } = parseArgs({
  options: {
    path: { type: 'string', default: '/api/notices/small' },
    seconds: { type: 'string', default: '10' },
    top: { type: 'string', default: '20' },
    subject: { type: 'string', multiple: true, default: ['gateway', 'plugin'] },
    flame: { type: 'boolean', default: false }
  }
})

prepare()
const place = await preparePlace()
for (const name of given.subject as SubjectName[]) {
  const folder = mkdtempSync(join(tmpdir(), 'bench-profile-'))
  const subject = await startSubject(name, place, { profileTo: folder })
  const run = (ms: number) =>
    place.load({
      origin: subject.origin,
      pid: subject.pid,
      requests: subject.requests(given.path, 64),
      warmMs: 0,
      ms
    })
  await run(3000)
  const { cpuMicros, requests } = await run(Number(given.seconds) * 1000)
  await subject.stop()
  const [file = ''] = readdirSync(folder)
  const profile = JSON.parse(readFileSync(join(folder, file), 'utf8')) as Profile
  const micros = cpuMicros / requests
  const title = `${titles[name]}: ${micros.toFixed(0)} µs CPU per request, being profiled`
  process.stdout.write(
    `\n## ${title} (${join(folder, file)})\n\n${table(profile, Number(given.top), micros)}`
  )
  if (given.flame) writeFlame(profile, name, `${title}, GET ${given.path}`)
}
await place.close()
process.exit()

interface Spot {
  readonly name: string
  readonly place: string
  /** The package, or the part of the gateway, on whose behalf it runs: Node's own functions work for who called them. */
  readonly owner: string
}

/** Self time, by function and by whom it was for; without idle time and start. */
function table(profile: Profile, top: number, microsPerRequest: number): string {
  const spots = spotsOf(profile)
  const byFunction = new Map<string, number>()
  const byOwner = new Map<string, number>()
  const add = (to: Map<string, number>, key: string, micros: number) =>
    to.set(key, (to.get(key) ?? 0) + micros)
  let busy = 0
  eachSample(profile, (id, micros) => {
    const spot = spots.get(id)
    if (spot === undefined || spot.name === '(idle)') return
    busy += micros
    add(
      byFunction,
      `${spot.name} | ${spot.place === '' ? `for ${spot.owner}` : spot.place}`,
      micros
    )
    add(byOwner, spot.owner, micros)
  })
  const rows = (of: Map<string, number>) =>
    [...of]
      .sort(([, a], [, b]) => b - a)
      .slice(0, top)
      .map(
        ([key, micros]) =>
          `| ${((100 * micros) / busy).toFixed(1)} % | ${((microsPerRequest * micros) / busy).toFixed(1)} | ${key} |`
      )
  return [
    '| Self | µs a request | Function | Where |',
    '| ---: | ---: | --- | --- |',
    ...rows(byFunction),
    '',
    '| With Node’s own for it | µs a request | Package or part |',
    '| ---: | ---: | --- |',
    ...rows(byOwner),
    ''
  ].join('\n')
}

/** Without the first third, which is start and warm-up. */
function eachSample(
  { samples, timeDeltas }: Profile,
  visit: (id: number, micros: number) => void
): void {
  const all = timeDeltas.reduce((sum, delta) => sum + delta, 0)
  let elapsed = 0
  samples.forEach((id, index) => {
    const micros = timeDeltas[index] ?? 0
    elapsed += micros
    if (elapsed >= all / 3) visit(id, micros)
  })
}

/** Writes `results/flame-SUBJECT.svg`. */
function writeFlame(profile: Profile, subject: SubjectName, title: string): void {
  const spots = spotsOf(profile)
  const parents = parentsOf(profile)
  const flame = new Flame()
  eachSample(profile, (id, micros) => {
    if (spots.get(id)?.name === '(idle)') return
    const stack: Frame[] = []
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
      const spot = spots.get(at)
      if (spot !== undefined && spot.name !== '(root)') stack.unshift(spot)
    }
    flame.add(stack, micros)
  })
  const folder = join(import.meta.dirname, 'results')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `flame-${subject}.svg`), flame.svg(title))
}

function parentsOf({ nodes }: Profile): Map<number, number> {
  return new Map(
    nodes.flatMap(({ id, children = [] }) => children.map(child => [child, id] as const))
  )
}

function spotsOf(profile: Profile): Map<number, Spot> {
  const { nodes } = profile
  const parents = parentsOf(profile)
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]))
  const ownerOf = (id: number | undefined): string => {
    if (id === undefined) return 'Node itself'
    const { functionName, url = '' } = frames.get(id) ?? {}
    if (functionName === '(garbage collector)') return functionName
    if (url === '' || url.startsWith('node:') || url.startsWith('wasm:')) {
      return ownerOf(parents.get(id))
    }
    const file = placeOf(url)
    const inside = file.lastIndexOf('node_modules/')
    if (inside < 0) return file
    return file
      .slice(inside + 13)
      .split('/')
      .slice(0, file.startsWith('@', inside + 13) ? 2 : 1)
      .join('/')
  }
  return new Map(
    nodes.map(({ id, callFrame: { functionName, url, lineNumber } }) => [
      id,
      {
        name: functionName === '' ? '(anonymous)' : functionName,
        place: url === '' ? '' : `${placeOf(url)}:${lineNumber + 1}`,
        owner: ownerOf(id)
      }
    ])
  )
}

function placeOf(url: string): string {
  if (!url.startsWith('file:')) return url
  return relative(join(import.meta.dirname, '..'), new URL(url).pathname)
}
