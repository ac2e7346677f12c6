/**
 * The parts of src and what each may import: the plan that the gate (`floors.ts`) holds the real imports against.
 * They stand in layers, the lowest first; a part imports only from parts above it in this list, so that no arrow
 * goes up and no two parts import each other, types included.
 */

interface Part {
  readonly name: string
  /** Folders (with a slash at the end, their subfolders included) and single files. */
  readonly holds: readonly string[]
  /** Lower parts, or single files of one (`session/identity-key.ts`). */
  readonly mayImport: readonly string[]
}

export interface Import {
  readonly from: string
  readonly to: string
}

const maxParts = 25
export const maxFloors = 12

/** Every part may import these, as far as they stand below it. */
const common = ['base', 'observability']

const parts: readonly Part[] = [
  {
    name: 'base',
    holds: [
      'errors.ts',
      'error-kind.ts',
      'sign-in-errors.ts',
      'error-advice.ts',
      'ops-errors.ts',
      'bounded-map.ts',
      'movable-state.ts',
      'steady-clock.ts'
    ],
    mayImport: []
  },
  { name: 'observability', holds: ['observability/'], mayImport: [] },
  { name: 'json', holds: ['json/'], mayImport: [] },
  { name: 'json-schema', holds: ['json-schema/'], mayImport: [] },
  { name: 'config/schema', holds: ['config/schema/'], mayImport: ['json-schema'] },
  {
    name: 'config/check',
    holds: ['config/check/'],
    mayImport: ['json', 'json-schema', 'config/schema']
  },
  {
    name: 'config/load',
    holds: ['config/load/'],
    mayImport: ['json', 'config/schema', 'config/check']
  },
  { name: 'contract', holds: ['contract/'], mayImport: ['json', 'json-schema'] },
  { name: 'session', holds: ['session/'], mayImport: ['json', 'config/schema'] },
  { name: 'login', holds: ['login/'], mayImport: ['json', 'config/schema', 'session'] },
  { name: 'limits', holds: ['limits/'], mayImport: ['config/schema', 'session/identity-key.ts'] },
  {
    name: 'shaping',
    holds: ['shaping/'],
    mayImport: ['json', 'config/schema', 'session/record.ts']
  },
  {
    name: 'proxy',
    holds: ['proxy/'],
    mayImport: ['json', 'config/schema', 'session/record.ts', 'session/identity-key.ts']
  },
  {
    name: 'api-docs',
    holds: ['api-docs/'],
    mayImport: ['json-schema', 'config/schema', 'shaping/shape.ts']
  },
  {
    name: 'services',
    holds: ['services/'],
    mayImport: [
      'json',
      'config/schema',
      'contract',
      'session',
      'login',
      'limits',
      'shaping',
      'proxy'
    ]
  },
  {
    name: 'app/hooks',
    holds: ['app/hooks/'],
    mayImport: ['json', 'config/schema', 'session', 'login', 'limits', 'shaping', 'proxy']
  },
  {
    name: 'app/endpoints',
    holds: ['app/endpoints/'],
    mayImport: ['json', 'config/schema', 'session', 'login', 'shaping', 'proxy', 'app/hooks']
  },
  {
    name: 'app',
    holds: ['app/'],
    mayImport: [
      'json',
      'config/schema',
      'contract',
      'session',
      'login',
      'shaping',
      'proxy',
      'services',
      'app/hooks',
      'app/endpoints'
    ]
  },
  {
    name: 'admin',
    holds: ['admin/'],
    mayImport: [
      'json',
      'config/schema',
      'session',
      'limits',
      'proxy/cookie-header.ts',
      'app/hooks',
      'app/listener.ts',
      'app/open-sockets.ts',
      'app/overload/peers.ts',
      'app/stalled-connections.ts',
      'app/unparsed.ts'
    ]
  },
  {
    name: 'dry-run',
    holds: ['dry-run/'],
    mayImport: [
      'json',
      'config/schema',
      'contract',
      'session',
      'login',
      'limits',
      'shaping',
      'proxy',
      'services',
      'app/hooks',
      'app',
      'admin'
    ]
  },
  {
    name: 'process/server',
    holds: ['process/server/'],
    mayImport: [
      'config/schema',
      'session/store.ts',
      'login',
      'limits/counting/machine-limits.ts',
      'services',
      'app/hooks/maintenance.ts',
      'app',
      'admin'
    ]
  },
  {
    name: 'process/cluster',
    holds: ['process/cluster/'],
    mayImport: [
      'config/schema',
      'config/load',
      'login',
      'limits',
      'services',
      'admin',
      'process/server'
    ]
  },
  {
    name: 'process/reload',
    holds: ['process/reload/'],
    mayImport: ['config/schema', 'config/load', 'login', 'dry-run', 'process/server']
  },
  {
    name: 'process',
    holds: ['process/'],
    mayImport: [
      'json',
      'config/schema',
      'config/load',
      'contract',
      'api-docs',
      'services',
      'admin',
      'process/server',
      'process/cluster',
      'process/reload'
    ]
  },
  {
    name: 'cli',
    holds: ['launch.js', 'node-version.js', 'cli/'],
    mayImport: [
      'json',
      'json-schema',
      'config/schema',
      'config/load',
      'contract',
      'session',
      'login',
      'limits',
      'shaping',
      'api-docs',
      'services',
      'app/hooks',
      'dry-run',
      'admin',
      'process/server',
      'process/reload',
      'process'
    ]
  }
]

const nested = parts.flatMap(({ holds }) => holds)

/** A folder is its part's without those of its subfolders that are parts themselves. */
function isIn({ holds }: Part, file: string): boolean {
  return holds.some(place => {
    if (!place.endsWith('/')) return file === place
    const inner = nested.filter(other => other !== place && other.startsWith(place))
    return file.startsWith(place) && !inner.some(other => file.startsWith(other))
  })
}

/** @param file from the root of the repository; undefined where not exactly one part holds it */
function partOf(file: string): string | undefined {
  const [only, ...others] = parts.filter(part => isIn(part, file.replace(/^src\//, '')))
  return others.length === 0 ? only?.name : undefined
}

/** Faults of the table itself: a part that names one above it would open a way up. */
function problemsOfTable(): string[] {
  const names = parts.map(({ name }) => name)
  return [
    ...(parts.length > maxParts ? [`${parts.length} parts, more than ${maxParts}`] : []),
    ...parts.flatMap(({ name, mayImport }, index) =>
      mayImport.flatMap(allowed => {
        const lower = allowed.endsWith('.ts') ? partOf(`src/${allowed}`) : allowed
        if (lower !== undefined && names.slice(0, index).includes(lower)) return []
        return [`the rule of ${name} names ${allowed}, which is no part below it`]
      })
    )
  ]
}

function isAllowed({ name, mayImport }: Part, to: string, file: string): boolean {
  const index = (part: string) => parts.findIndex(other => other.name === part)
  return (
    mayImport.includes(to) ||
    mayImport.includes(file.replace(/^src\//, '')) ||
    (common.includes(to) && index(to) < index(name))
  )
}

/** Files without a part, and imports that no rule allows. */
export function problemsOfParts(files: readonly string[], imports: readonly Import[]): string[] {
  const homeless = files
    .filter(file => partOf(file) === undefined)
    .map(file => `${file} is in no part, or in more than one (test/support/parts.ts)`)
  const forbidden = imports.flatMap(({ from, to }) => {
    const [part, target] = [parts.find(({ name }) => name === partOf(from)), partOf(to)]
    if (
      part === undefined ||
      target === undefined ||
      part.name === target ||
      isAllowed(part, target, to)
    ) {
      return []
    }
    return [`${part.name} must not import ${target}: ${from} → ${to}`]
  })
  return [...problemsOfTable(), ...homeless, ...forbidden]
}

/** What a rule allows and nobody does any more, so that the table stays what the code is. */
export function problemsOfUnused(imports: readonly Import[]): string[] {
  return parts.flatMap(({ name, mayImport }) =>
    mayImport
      .filter(
        allowed =>
          !imports.some(
            ({ from, to }) =>
              partOf(from) === name && (partOf(to) === allowed || to === `src/${allowed}`)
          )
      )
      .map(
        allowed =>
          `${name} may import ${allowed} and does not: take it out of test/support/parts.ts`
      )
  )
}

/** The parts from the ground up; a part's floor is one above the highest that it imports. */
export function floorsOf(imports: readonly Import[]): string[][] {
  const floors: string[][] = []
  const floorOf = new Map<string, number>()
  for (const { name } of parts) {
    const below = imports
      .filter(({ from }) => partOf(from) === name)
      .map(({ to }) => partOf(to))
      .filter(target => target !== name)
    const floor = Math.max(-1, ...below.map(target => floorOf.get(target ?? '') ?? -1)) + 1
    floorOf.set(name, floor)
    floors[floor] = [...(floors[floor] ?? []), name]
  }
  return floors
}

/** Pairs of parts of which the first imports the second. */
export function arrowsOf(imports: readonly Import[]): Array<readonly [from: string, to: string]> {
  const pairs = imports.flatMap(({ from, to }) => {
    const [part, target] = [partOf(from), partOf(to)]
    if (part === undefined || target === undefined || part === target) return []
    return [[`${part} → ${target}`, [part, target]] as const]
  })
  return [...new Map(pairs).values()]
}
