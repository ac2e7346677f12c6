/**
 * The gate of emitters: whatever makes a stream, socket, server, worker, watcher or client stands
 * directly in `adopt(…)`, and streams are joined by `pipe(…)` (src/observability/emitters.ts).
 * Types decide, not names. Each run also judges a fixture that breaks the rule
 * (`emitters-canary.ts`): a gate that does not see those faults fails, whatever it says of `src`.
 */
import { relative } from 'node:path'
import ts from 'typescript'

interface Config {
  readonly compilerOptions: object
}

const home = 'src/observability/emitters.ts'
const canary = 'test/support/emitters-canary.ts'
/** Hashes and ciphers are called as functions, which throw; loggers emit changes of level only. */
const harmless = ['/crypto.d.ts', '/pino/pino.d.ts']

const { config } = ts.readConfigFile('tsconfig.json', ts.sys.readFile) as { config: Config }
const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, process.cwd())
const files = ts.sys.readDirectory('src', ['.ts', '.js']).map(file => relative('.', file))
const program = ts.createProgram([...files, canary], options)
const checker = program.getTypeChecker()

function isHarmless(type: ts.Type): boolean {
  const declaration = (type.aliasSymbol ?? type.symbol)?.declarations?.[0]
  return harmless.some(end => declaration?.getSourceFile().fileName.endsWith(end) === true)
}

function isEmitter(type: ts.Type): boolean {
  if (type.isUnion()) return type.types.some(isEmitter)
  if (isHarmless(type)) return false
  const members = ['on', 'emit', 'listenerCount', 'prependListener']
  return members.every(name => type.getProperty(name) !== undefined)
}

/** Of what is called; behind `.call(…)`, of the method that stands before it. */
function declarationOf(node: ts.NewExpression | ts.CallExpression) {
  const { expression: callee } = node
  if (ts.isPropertyAccessExpression(callee) && callee.name.text === 'call') {
    return checker.getTypeAtLocation(callee.expression).getCallSignatures()[0]?.declaration
  }
  return checker.getResolvedSignature(node)?.declaration
}

/** Not a method that gives back the emitter it is called on; what src declares is judged there. */
function isMade(node: ts.NewExpression | ts.CallExpression): boolean {
  const declaration = declarationOf(node)
  if (ts.isCallExpression(node) && declaration !== undefined) {
    if (declaration.type?.kind === ts.SyntaxKind.ThisType) return false
    if (!declaration.getSourceFile().isDeclarationFile) return false
  }
  const type = checker.getTypeAtLocation(node)
  return isEmitter(type) || isEmitter(checker.getAwaitedType(type) ?? type)
}

const joins = new Set(['pipeline', 'compose'])

/** Whether a call joins streams by Node's own means, some of which leave one of them open. */
function isJoin({ expression }: ts.CallExpression): boolean {
  if (ts.isIdentifier(expression)) return joins.has(expression.text)
  if (!ts.isPropertyAccessExpression(expression)) return false
  const method = expression.name.text
  if (method !== 'pipe' && !joins.has(method)) return false
  return isEmitter(checker.getTypeAtLocation(expression.expression))
}

function isAdopted({ parent }: ts.Node): boolean {
  if (ts.isAwaitExpression(parent)) return isAdopted(parent)
  if (!ts.isCallExpression(parent) || !ts.isIdentifier(parent.expression)) return false
  return parent.expression.text === 'adopt'
}

function judge(file: string): { seen: number; faults: string[] } {
  const source = program.getSourceFile(file)
  const faults: string[] = []
  let seen = 0
  const fault = (node: ts.NewExpression | ts.CallExpression, what: string) => {
    const { line } = ts.getLineAndCharacterOfPosition(node.getSourceFile(), node.getStart())
    const text = node.expression.getText().replaceAll(/\s+/g, ' ').slice(0, 60)
    faults.push(`${file}:${line + 1}: ${text}: ${what} (${home})`)
  }
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && isJoin(node)) fault(node, 'joins streams: use pipe()')
    else if ((ts.isNewExpression(node) || ts.isCallExpression(node)) && isMade(node)) {
      seen++
      if (!isAdopted(node)) fault(node, 'makes an emitter: let it stand directly in adopt()')
    }
    ts.forEachChild(node, visit)
  }
  if (source !== undefined && file !== home) visit(source)
  return { seen, faults }
}

/** The gate's own faults: lines of the fixture that it judges wrongly. */
function problemsOfCanary(): string[] {
  const found = judge(canary).faults.map(fault => Number(/:(\d+):/.exec(fault)?.[1]))
  const lines = program.getSourceFile(canary)?.text.split('\n') ?? []
  const expected = lines.flatMap((line, index) => (line.endsWith('// fault') ? [index + 1] : []))
  const missed = expected.filter(line => !found.includes(line))
  const wrong = found.filter(line => !expected.includes(line))
  return [
    ...(expected.length === 0 ? ['the gate is blind: it did not find its canary'] : []),
    ...missed.map(line => `the gate is blind: it does not see ${canary}:${line}`),
    ...wrong.map(line => `the gate is wrong about ${canary}:${line}`)
  ]
}

const judged = files.map(judge)
const seen = judged.reduce((sum, one) => sum + one.seen, 0)
const problems = [
  ...problemsOfCanary(),
  ...(seen < 10 ? [`the gate is blind: it saw only ${seen} emitters made in src`] : []),
  ...judged.flatMap(({ faults }) => faults)
]

if (problems.length > 0) {
  process.stderr.write(`${problems.join('\n')}\n`)
  process.exit(1)
}
process.stdout.write(`emitters: ${seen} made in src, all adopted\n`)
