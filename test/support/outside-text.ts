/**
 * The gate of outside text: what clients and back-ends send is read in linear time, and by few.
 *
 * - No regular expression of src can be made to take more than linear time (recheck).
 * - Only `src/json/` parses JSON, since `JSON.parse` and `.json()` round numbers beyond 2^53.
 * - Whoever takes text apart piece by piece stands in `readers.ts`: measured there, or with a reason.
 *
 * Each run first judges a fixture that breaks the rules (`outside-text-canary.ts`): a gate that does
 * not see those faults fails, whatever it says of `src`.
 */
import { relative } from 'node:path'
import type { Diagnostics } from 'recheck'
import ts from 'typescript'
import { exempt, parsers, patterns, readers } from './readers.ts'

// The backend in JavaScript alone, which needs neither Java nor a binary.
process.env['RECHECK_SYNC_BACKEND'] = 'pure'
const { checkSync } = await import('recheck')

/** So many exceptions there are. May only fall. */
const maxPatterns = 13
const maxParsers = 5
const maxExempt = 21

interface Config {
  readonly compilerOptions: object
}

interface Finding {
  /** The file and the nearest named function. */
  readonly place: string
  readonly line: number
  /** For a person. */
  readonly what: string
}

const canary = 'test/support/outside-text-canary.ts'
/** The page reads numbers of the gateway itself, none beyond 2^53, where `src/json/` cannot run. */
const ownReaders = /^src\/(?:json|admin\/page)\//
/**
 * Commands read what operators give them, config is an operator's own, and the ops page runs in the
 * operator's browser on answers of the gateway.
 */
const operators =
  /^src\/(?:cli|admin\/page|config|json-schema|api-docs|dry-run|process\/reload\/watcher)\b/

const { config } = ts.readConfigFile('tsconfig.json', ts.sys.readFile) as { config: Config }
const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, process.cwd())
const files = ts.sys.readDirectory('src', ['.ts', '.js']).map(file => relative('.', file))
const program = ts.createProgram([...files, canary], options)
const checker = program.getTypeChecker()

function isText(node: ts.Node): boolean {
  const holds = (type: ts.Type): boolean =>
    type.isUnion()
      ? type.types.some(holds)
      : (type.flags & ts.TypeFlags.StringLike) !== 0 && !type.isStringLiteral()
  return holds(checker.getTypeAtLocation(node))
}

const isPattern = (node: ts.Node): boolean =>
  checker.getTypeAtLocation(node).symbol?.name === 'RegExp'

function isInLoop(node: ts.Node): boolean {
  const { parent } = node
  if (parent === undefined || ts.isFunctionLike(parent)) return false
  return ts.isIterationStatement(parent, false) || isInLoop(parent)
}

function placeOf(node: ts.Node): string {
  for (let at: ts.Node | undefined = node; at !== undefined; at = at.parent) {
    if ((ts.isFunctionDeclaration(at) || ts.isMethodDeclaration(at)) && at.name !== undefined) {
      return at.name.getText()
    }
    if (ts.isVariableDeclaration(at) || ts.isPropertyAssignment(at)) {
      const { initializer, name } = at
      if (initializer !== undefined && ts.isFunctionLike(initializer)) return name.getText()
    }
  }
  return 'module'
}

const splitting = new Set(['split', 'matchAll'])
const stepping = new Set([
  'at',
  'charCodeAt',
  'codePointAt',
  'includes',
  'indexOf',
  'lastIndexOf',
  'slice',
  'startsWith',
  'substring'
])

/** Whether a call takes a text apart, or looks at it once in each turn of a loop. */
function isReading(node: ts.Node): boolean {
  if (ts.isElementAccessExpression(node)) return isText(node.expression) && isInLoop(node)
  if (ts.isForOfStatement(node) || ts.isSpreadElement(node)) return isText(node.expression)
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return false
  const {
    name: { text: method },
    expression: subject
  } = node.expression
  if (splitting.has(method)) return isText(subject)
  if (stepping.has(method)) return isInLoop(node) && isText(subject)
  if (method === 'exec' || method === 'test') return isInLoop(node) && isPattern(subject)
  if (method !== 'replace' && method !== 'replaceAll') return false
  const [, by] = node.arguments
  if (by === undefined || !isText(subject)) return false
  return checker.getTypeAtLocation(by).getCallSignatures().length > 0
}

/** Whether a call parses JSON by a means that rounds. */
function isParsing(node: ts.Node): boolean {
  if (!ts.isPropertyAccessExpression(node)) return false
  const {
    expression,
    name: { text: method }
  } = node
  if (method === 'parse') return checker.getTypeAtLocation(expression).symbol?.name === 'JSON'
  return method === 'json' && ts.isCallExpression(node.parent) && node.parent.arguments.length === 0
}

function isMadePattern(node: ts.Node): boolean {
  return (
    (ts.isNewExpression(node) || ts.isCallExpression(node)) &&
    ts.isIdentifier(node.expression) &&
    node.expression.text === 'RegExp'
  )
}

/** Limits of steps decide, not the clock of a busy machine. */
const untimed = { timeout: 60_000, attackTimeout: null, incubationTimeout: null }

const toText = (verdict: Diagnostics): string =>
  verdict.status === 'vulnerable' ? verdict.complexity.summary : 'cannot be decided in a minute'

const judged = new Map<string, string | undefined>()

/** Why a pattern can be made to take more than linear time; undefined where it cannot. */
function weakness(literal: string): string | undefined {
  if (judged.has(literal)) return judged.get(literal)
  const end = literal.lastIndexOf('/')
  const verdict = checkSync(literal.slice(1, end), literal.slice(end + 1), untimed)
  const found = verdict.status === 'safe' ? undefined : toText(verdict)
  judged.set(literal, found)
  return found
}

interface Findings {
  readonly weak: Finding[]
  readonly reading: Finding[]
  readonly parsing: Finding[]
}

function findingsIn(file: string): Findings {
  const found: Findings = { weak: [], reading: [], parsing: [] }
  const source = program.getSourceFile(file)
  const add = (kind: keyof Findings, node: ts.Node, what: string) => {
    const { line } = ts.getLineAndCharacterOfPosition(node.getSourceFile(), node.getStart())
    found[kind].push({ place: `${file}#${placeOf(node)}`, line: line + 1, what })
  }
  const visit = (node: ts.Node): void => {
    if (ts.isRegularExpressionLiteral(node)) {
      // What is known to be weak costs recheck most.
      const isKnown = Object.hasOwn(patterns, `${file}#${placeOf(node)}`)
      const why = isKnown ? 'known' : weakness(node.text)
      if (why !== undefined) add('weak', node, `${node.text}: ${why}`)
    } else if (isMadePattern(node)) add('weak', node, 'a pattern that is made at run time')
    if (!operators.test(file) && isReading(node)) add('reading', node, 'takes text apart')
    if (!ownReaders.test(file) && isParsing(node)) {
      add('parsing', node, 'parses JSON by itself')
    }
    ts.forEachChild(node, visit)
  }
  if (source !== undefined) visit(source)
  return found
}

const advice: Readonly<Record<keyof Findings, string>> = {
  weak: 'write it so that it cannot, or name it in `patterns`',
  reading: 'name it in `readers`, where it is measured, or in `exempt`',
  parsing: 'use parseKeepingDigits() of src/json/digits.ts, or name it in `parsers`'
}

function problemsOf(kind: keyof Findings, found: Finding[], known: ReadonlySet<string>): string[] {
  const places = new Set(found.map(({ place }) => place))
  return [
    ...found
      .filter(({ place }) => !known.has(place))
      .map(
        ({ place, line, what }) =>
          `${place.split('#', 1)[0]}:${line}: ${what} in ${place} (${advice[kind]}, test/support/readers.ts)`
      ),
    ...[...known]
      .filter(place => !places.has(place))
      .map(place => `test/support/readers.ts names ${place} without need: take it out`)
  ]
}

/** The gate's own faults: lines of the fixture that it judges wrongly. */
function problemsOfCanary(): string[] {
  const { weak, reading, parsing } = findingsIn(canary)
  const found = new Set([...weak, ...reading, ...parsing].map(({ line }) => line))
  const lines = program.getSourceFile(canary)?.text.split('\n') ?? []
  const expected = lines.flatMap((line, index) => (line.endsWith('// fault') ? [index + 1] : []))
  return [
    ...(expected.length === 0 ? ['the gate is blind: it did not find its canary'] : []),
    ...expected
      .filter(line => !found.has(line))
      .map(line => `the gate is blind to ${canary}:${line}`),
    ...[...found]
      .filter(line => !expected.includes(line))
      .map(line => `the gate is wrong about ${canary}:${line}`)
  ]
}

function problemsOfCounts(): string[] {
  const counts = [
    ['patterns', Object.keys(patterns).length, maxPatterns],
    ['parsers', Object.keys(parsers).length, maxParsers],
    ['exempt', Object.keys(exempt).length, maxExempt]
  ] as const
  return counts.flatMap(([name, count, max]) => {
    if (count === max) return []
    const what = count > max ? 'may only fall' : 'has fallen: lower its maximum here'
    return [`\`${name}\` has ${count} exceptions, not ${max}: it ${what}`]
  })
}

const all = files.map(findingsIn)
const measured = readers.flatMap(({ of }) => of)
const registered = new Set([...measured, ...Object.keys(exempt)])
const problems = [
  ...problemsOfCanary(),
  ...problemsOfCounts(),
  ...problemsOf(
    'weak',
    all.flatMap(({ weak }) => weak),
    new Set(Object.keys(patterns))
  ),
  ...problemsOf(
    'parsing',
    all.flatMap(({ parsing }) => parsing),
    new Set(Object.keys(parsers))
  ),
  ...problemsOf(
    'reading',
    all.flatMap(({ reading }) => reading),
    registered
  )
]

if (problems.length > 0) {
  process.stderr.write(`${problems.join('\n')}\n`)
  process.exit(1)
}
const count = `${judged.size} patterns are linear, ${measured.length} readers are measured`
process.stdout.write(`outside text: ${count}\n`)
