/**
 * The gate of the house: parts import downward only, no cycles, no file outgrows its room.
 * Each run first judges a fixture that breaks the rules (`floors-canary/`): a gate that does not see
 * those faults fails, whatever it says of `src`.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cruise, type IForbiddenRuleType, type ICruiseResult } from 'dependency-cruiser'

/** What each part of src may import from src. The command line and `main` may import everything. */
const mayImport: ReadonlyArray<readonly [part: string, from: string, allowed: string]> = [
  ['config and errors', '^src/(config/|errors)', '^src/(config/|errors|json/)'],
  ['json', '^src/json/', '^src/(errors|json/)'],
  ['metrics', '^src/metrics', '^src/metrics'],
  ['the envelope', '^src/envelope', '^src/(config/|errors)'],
  ['session', '^src/session/', '^src/(config/|errors|metrics|json/|session/)'],
  ['login', '^src/login/', '^src/(config/|errors|metrics|json/|session/|login/)'],
  ['proxy', '^src/proxy/', '^src/(config/|errors|metrics|json/|session/|proxy/)'],
  ['contract', '^src/contract/', '^src/(config/|errors|metrics|json/|contract/)'],
  ['limits', '^src/limits/', '^src/(config/|errors|metrics|json/|session/identity-key|limits/)'],
  ['redis', '^src/(services/)?redis', '^src/(config/|services/redis)'],
  [
    'api docs',
    '^src/(api-docs|description)/',
    '^src/(config/|errors|json/|proxy/shape|api-docs/|description/)'
  ],
  [
    'hooks',
    '^src/hooks/',
    '^src/(config/|errors|metrics|envelope|log-output|json/|session/|login/|proxy/|limits/|hooks/)'
  ],
  [
    'endpoints',
    '^src/(endpoints|admin)/',
    '^src/(config/|errors|metrics|envelope|json/|session/|login/|proxy/|limits/|hooks/|endpoints/|admin/)'
  ],
  [
    'app, services, gateway',
    '^src/(app|services|routing|gateway)',
    '^src/(?!commands/|cli/|main|launch)'
  ]
]

/** What every part may import. */
const everywhere = '^src/observability/(emitters|unprintable)'

/** Packages that only one place may load. Types may cross: they are gone at run time. */
const packageHomes: ReadonlyArray<readonly [rule: string, home: string, packages: string]> = [
  [
    'Fastify runs on the upper floors only',
    '^src/(hooks|endpoints|admin|app|gateway)',
    '^node_modules/(fastify|@fastify)/'
  ],
  ['only the upstream opens sockets to back-ends', '^src/proxy/upstream', '^node_modules/undici/'],
  ['only redis.ts and its parts dial Redis', '^src/(services/)?redis', '^node_modules/ioredis/']
]

const forbidden: IForbiddenRuleType[] = [
  {
    name: 'no cycles',
    severity: 'error',
    from: {},
    to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } }
  },
  ...mayImport.map(([part, from, allowed]): IForbiddenRuleType => ({
    name: `${part} import only from below`,
    severity: 'error',
    from: { path: from },
    to: { path: '^src', pathNot: [allowed, everywhere] }
  })),
  ...packageHomes.map(([name, home, packages]): IForbiddenRuleType => ({
    name,
    severity: 'error',
    from: { path: '^src', pathNot: home },
    to: { path: packages, dependencyTypesNot: ['type-only'] }
  }))
]

/** Draws the imports of `src` below a folder and holds them against the rules. */
async function violationsIn(baseDir?: string): Promise<{ seen: number; violations: string[] }> {
  const result = await cruise(['src'], {
    validate: true,
    ...(baseDir !== undefined && { baseDir }),
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: { extensions: ['.ts', '.js'] },
    ruleSet: { forbidden }
  })
  const { summary, modules } = result.output as ICruiseResult
  return {
    seen: modules.filter(({ source }) => source.startsWith('src/')).length,
    violations: summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${to}`)
  }
}

/** The faults of the fixture. Where one is missing, the gate is blind to all faults of its kind. */
const canaryFaults = [
  'config and errors import only from below: src/config/upward.ts → src/app.ts',
  'no cycles: src/proxy/one.ts → src/proxy/other.ts'
]

const maxFileLines = 320
/** Files of src that are longer than {@link maxFileLines}. May only fall. */
const maxLongFiles = 8
const maxColumns = 100
/** Lines wider than {@link maxColumns} in all of src. May only fall, until the formatter ends them. */
const maxWideLines = 635

/** Ways around the gates, each with how often it stands in these folders. They may only fall. */
const exceptions: ReadonlyArray<
  readonly [what: string, pattern: RegExp, folders: readonly string[], max: number]
> = [
  ['`as never`', /\bas never\b/g, ['src'], 17],
  ['disabled lint rules', /(?:eslint|oxlint)-disable/g, ['src', 'test', 'bench', 'examples'], 2],
  ['skipped tests', /\{ (?:skip|todo): |\bt\.(?:skip|todo)\(/g, ['test'], 2]
]

/** Files of src that are excused from a rule of `.oxlintrc.json`, once per rule. May only fall. */
const maxExcused = 90

function problemsOfExcused(): string[] {
  const { overrides } = JSON.parse(readFileSync('.oxlintrc.json', 'utf8')) as {
    readonly overrides: ReadonlyArray<{
      readonly files: readonly string[]
      readonly rules: Readonly<Record<string, unknown>>
    }>
  }
  const excused = overrides
    .filter(({ rules }) => Object.values(rules).includes('off'))
    .flatMap(({ files }) => files.filter(file => file.startsWith('src/')))
  return problemOfCount('excuses in .oxlintrc.json', excused.length, maxExcused)
}

function problemsOfExceptions(): string[] {
  return exceptions.flatMap(([what, pattern, folders, max]) => {
    const texts = folders
      .flatMap(filesBelow)
      .filter(file => !file.endsWith('floors.ts'))
      .map(file => readFileSync(file, 'utf8'))
    const count = texts.reduce((sum, text) => sum + (text.match(pattern)?.length ?? 0), 0)
    if (count === max) return []
    const advice = count > max ? 'do without the new ones' : 'lower their maximum in this gate'
    return [`${folders.join(', ')}: ${count} ${what}, not ${max}: ${advice}`]
  })
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => /\.(ts|js)$/.test(name) && !name.includes('node_modules'))
    .map(name => join(folder, name))
}

function readSources(): Array<{ file: string; lines: string[] }> {
  return readdirSync('src', { recursive: true, encoding: 'utf8' })
    .filter(name => /\.(ts|js)$/.test(name))
    .map(file => ({ file, lines: readFileSync(join('src', file), 'utf8').split('\n') }))
}

function problemsOfLayout(): string[] {
  const sources = readSources()
  const unnamed = sources.filter(
    ({ lines }) => !lines.slice(0, 2).some(line => line.startsWith('/**'))
  )
  const wide = sources.flatMap(({ lines }) => lines.filter(line => line.length > maxColumns)).length
  const long = sources.filter(({ lines }) => lines.length > maxFileLines)
  const names = long.map(({ file, lines }) => `${file} (${lines.length})`).join(', ')
  return [
    ...unnamed.map(
      ({ file }) => `src/${file} does not open with a sentence that says what it owns`
    ),
    ...problemOfCount(`lines over ${maxColumns} columns`, wide, maxWideLines),
    ...problemOfCount(`files over ${maxFileLines} lines: ${names}`, long.length, maxLongFiles)
  ]
}

function problemOfCount(what: string, count: number, max: number): string[] {
  if (count === max) return []
  const advice = count > max ? 'mend the new ones' : 'lower their maximum in this gate'
  return [`src has ${count}, not ${max}, ${what}: ${advice}`]
}

const canary = await violationsIn(join(import.meta.dirname, 'floors-canary'))
const blind = canaryFaults.filter(fault => !canary.violations.includes(fault))
const { seen, violations } = await violationsIn()
const problems = [
  ...blind.map(fault => `the gate is blind: it does not see the canary's "${fault}"`),
  ...(seen < 30 ? [`the gate is blind: it saw only ${seen} modules`] : []),
  ...violations,
  ...problemsOfLayout(),
  ...problemsOfExceptions(),
  ...problemsOfExcused()
]

if (problems.length > 0) {
  process.stderr.write(`${problems.join('\n')}\n`)
  process.exit(1)
}
process.stdout.write(`floors: ${seen} modules, no import upward, no cycle\n`)
