/**
 * The gate of the house: every file in one part, parts import downward only (parts.ts), no cycles, no file outgrows
 * its room. Each run first judges a fixture that breaks the rules (`floors-canary/`): a gate that does not see
 * those faults fails, whatever it says of `src`.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cruise, type IForbiddenRuleType, type ICruiseResult } from 'dependency-cruiser'
import {
  arrowsOf,
  floorsOf,
  type Import,
  maxFloors,
  problemsOfParts,
  problemsOfUnused
} from './parts.ts'
import { drawParts } from './parts-picture.ts'
import { problemsOfTests } from './tested-elsewhere.ts'

/** Packages that only one place may load. Types may cross: they are gone at run time. */
const packageHomes: ReadonlyArray<readonly [rule: string, home: string, packages: string]> = [
  [
    'Fastify runs in the app and the operators’ listener only',
    '^src/(app|admin)/',
    '^node_modules/(fastify|@fastify)/'
  ],
  ['only the upstream opens sockets to back-ends', '^src/proxy/address', '^node_modules/undici/'],
  ['only services dial Redis', '^src/services/redis', '^node_modules/ioredis/']
]

const forbidden: IForbiddenRuleType[] = [
  {
    name: 'no cycles',
    severity: 'error',
    from: {},
    to: { circular: true }
  },
  ...packageHomes.map(([name, home, packages]): IForbiddenRuleType => ({
    name,
    severity: 'error',
    from: { path: '^src', pathNot: home },
    to: { path: packages, dependencyTypesNot: ['type-only'] }
  }))
]

interface Drawn {
  readonly files: string[]
  readonly imports: Import[]
  readonly violations: string[]
}

/** Draws the imports of `src` below a folder, those of types included, and holds them against the rules. */
async function draw(baseDir?: string): Promise<Drawn> {
  const result = await cruise(['src'], {
    validate: true,
    ...(baseDir !== undefined && { baseDir }),
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: { extensions: ['.ts', '.js'] },
    ruleSet: { forbidden }
  })
  const { summary, modules } = result.output as ICruiseResult
  const ours = modules.filter(({ source }) => source.startsWith('src/'))
  const files = ours.map(({ source }) => source)
  const imports = ours.flatMap(({ source, dependencies }) =>
    dependencies
      .filter(({ resolved }) => resolved.startsWith('src/'))
      .map(({ resolved }): Import => ({ from: source, to: resolved }))
  )
  return {
    files,
    imports,
    violations: [
      ...summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${to}`),
      ...problemsOfParts(files, imports)
    ]
  }
}

/** The faults of the fixture. Where one is missing, the gate is blind to all faults of its kind. */
const canaryFaults = [
  'config/schema must not import app: src/config/schema/upward.ts → src/app/app.ts',
  'session must not import app: src/session/upward-type.ts → src/app/app.ts',
  'no cycles: src/proxy/one.ts → src/proxy/other.ts',
  'no cycles: src/session/one-type.ts → src/session/other-type.ts',
  'src/stray.ts is in no part, or in more than one (test/support/parts.ts)'
]

const maxFileLines = 320
/** Files of src that are longer than {@link maxFileLines}. May only fall. */
const maxLongFiles = 0
const maxColumns = 100
/** Lines wider than {@link maxColumns} in all of src. May only fall, until the formatter ends them. */
const maxWideLines = 104

/** Ways around the gates, each with how often it stands in these folders. They may only fall. */
const exceptions: ReadonlyArray<
  readonly [what: string, pattern: RegExp, folders: readonly string[], max: number]
> = [
  ['`as never`', /\bas never\b/g, ['src'], 12],
  ['disabled lint rules', /(?:eslint|oxlint)-disable/g, ['src', 'test', 'bench', 'examples'], 2],
  ['skipped tests', /\{ (?:skip|todo): |\bt\.(?:skip|todo)\(/g, ['test'], 2]
]

/** Files of src that are excused from a rule of `.oxlintrc.json`, once per rule. May only fall. */
const maxExcused = 0

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

function namesBelow(folder: string, ending: RegExp): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => ending.test(name) && !name.includes('floors-canary'))
    .map(name => name.replace(ending, ''))
}

const pictureFile = 'docs/parts.svg'

const canary = await draw(join(import.meta.dirname, 'floors-canary'))
const blind = canaryFaults.filter(fault => !canary.violations.includes(fault))
const { files, imports, violations } = await draw()
const floors = floorsOf(imports)
const arrows = arrowsOf(imports)
const picture = drawParts(floors, arrows)
if (process.argv.includes('--draw')) writeFileSync(pictureFile, picture)
const problems = [
  ...blind.map(fault => `the gate is blind: it does not see the canary's "${fault}"`),
  ...(files.length < 30 ? [`the gate is blind: it saw only ${files.length} modules`] : []),
  ...(floors.length > maxFloors ? [`${floors.length} floors, more than ${maxFloors}`] : []),
  ...(readFileSync(pictureFile, 'utf8') === picture
    ? []
    : [`${pictureFile} is not what the imports are: npm run draw`]),
  ...violations,
  ...problemsOfUnused(imports),
  ...problemsOfTests(namesBelow('src', /(?<!\.d)\.(?:ts|js)$/), namesBelow('test', /\.test\.ts$/)),
  ...problemsOfLayout(),
  ...problemsOfExceptions(),
  ...problemsOfExcused()
]

if (problems.length > 0) {
  process.stderr.write(`${problems.join('\n')}\n`)
  process.exit(1)
}
process.stdout.write(
  `floors: ${files.length} files in ${floors.flat().length} parts on ${floors.length} floors, ` +
    `${arrows.length} arrows, none upward, no cycle\n`
)
