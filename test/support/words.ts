/**
 * The gate of the words: declarations in src whose names say too little, with what to write
 * instead. Their number may only fall. `--list` prints them.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'

/** A declared name, and the field's word for it. */
const insteadOf: Readonly<Record<string, string>> = {
  told: 'formatX or toJson',
  most: 'maxRows, maxItems, with the unit',
  least: 'minX, with the unit',
  longest: 'maxX, with the unit',
  given: 'the noun',
  found: 'the noun',
  known: 'the noun',
  made: 'the noun',
  own: 'the noun',
  its: 'the noun',
  one: 'the noun',
  epitaph: 'tombstone',
  onAlive: 'onHeartbeat',
  boundMs: 'maxStalenessMs',
  roster: 'activeRequests',
  turns: 'yield',
  othersTurn: 'yieldToRequests',
  trial: 'tryConfig',
  examination: 'validation',
  raiseEpoch: 'bumpEpoch',
  rehearsal: 'tracedApp',
  onward: 'forwarding',
  Placing: 'Locate',
  owed: 'unreported',
  unasked: 'skipped',
  serving: 'publicServer',
  addDesk: 'addAdminRoutes',
  demand: 'requiredLimit',
  outage: 'withFallback',
  Guarded: 'AttemptHandle',
  giveBack: 'refund',
  whoIn: 'inFlightKey',
  upkeep: 'tokenRefresh',
  madeUpSecret: 'ephemeralSecret',
  everUp: 'hasConnected',
  whenOver: 'onResponseClose',
  One: 'WorkerHandle',
  sendDirectly: 'forwardBodyless',
  collectRoutes: 'compileRoutes',
  composed: 'aggregated',
  gathering: 'partsPending',
  judge: 'evaluate',
  Known: 'CachedRecord',
  Found: 'StoredRecord',
  Carried: 'PluginSession',
  carry: 'setLiveSession'
}

interface Place {
  readonly file: string
  readonly line: number
  readonly name: string
}

function placesIn(file: string): Place[] {
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true)
  const places: Place[] = []
  const visit = (node: ts.Node): void => {
    const name = declaredName(node)
    if (name !== undefined && Object.hasOwn(insteadOf, name.text)) {
      const { line } = source.getLineAndCharacterOfPosition(name.getStart())
      places.push({ file, line: line + 1, name: name.text })
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return places
}

/** Of variables, parameters, functions, classes and types; members may be others' words. */
function declaredName(node: ts.Node): ts.Identifier | undefined {
  const declares =
    ts.isVariableDeclaration(node) ||
    ts.isParameter(node) ||
    ts.isBindingElement(node) ||
    ts.isFunctionDeclaration(node) ||
    ts.isClassDeclaration(node) ||
    ts.isInterfaceDeclaration(node) ||
    ts.isTypeAliasDeclaration(node)
  return declares && node.name !== undefined && ts.isIdentifier(node.name) ? node.name : undefined
}

/** Declarations in src with such a name. May only fall. */
const maxPlaces = 0

const files = readdirSync('src', { recursive: true, encoding: 'utf8' })
const places = files
  .filter(name => name.endsWith('.ts'))
  .flatMap(name => placesIn(join('src', name)))
if (process.argv.includes('--list')) {
  for (const { file, line, name } of places) {
    process.stdout.write(`${file}:${line} ${name}: ${insteadOf[name]}\n`)
  }
}
if (places.length !== maxPlaces) {
  const advice = places.length > maxPlaces ? 'name the new ones' : 'lower the maximum in words.ts'
  process.stderr.write(
    `src declares ${places.length} names that say too little, not ${maxPlaces}: ${advice} ` +
      '(npm run check:words -- --list)\n'
  )
  process.exit(1)
}
process.stdout.write(`words: ${places.length} names left that say too little\n`)
