/** Rules for shapes and their examples: an operation that could never do what it says is a fault here, not a surprise at run time. */
import { createRequire } from 'node:module'
import { losesDigits } from '../../json/digits.ts'
import type { Report } from './report.ts'
import { nearest } from '../schema/faults.ts'
import type { LimitsConfig } from '../schema/limits.ts'
import { partsOf } from '../schema/parts.ts'
import type { RoutesConfig } from '../schema/routes.ts'
import type { ShapeStep } from '../schema/shapes.ts'
import type { Path } from '../schema/visit.ts'

type Shapes = RoutesConfig['shapes']

// Large, and only for those who write expressions.
const require = createRequire(import.meta.url)

type Checked = { readonly routes: RoutesConfig; readonly limits: LimitsConfig }

export function checkShapes({ routes: config, limits }: Checked, report: Report): void {
  const { routes, endpoints, shapes, examples } = config
  const known = Object.keys(shapes)
  const used = new Set<string>()
  const must = (path: Path, given: string | undefined) => {
    if (given === undefined) return
    used.add(given)
    if (!known.includes(given))
      report('routes', path, `there is no shape "${given}".${nearest(given, known)}`)
  }
  const warnAt = (file: 'limits' | 'routes', path: Path) => (message: string) =>
    report(file, path, message, 'warning')
  warnOfSize(limits.sizes.shape, warnAt('limits', ['sizes', 'shape']))
  for (const [name, { shape, maxShaped, tooLarge, parts }] of Object.entries(routes)) {
    must(['routes', name, 'shape'], shape)
    warnOfSize(maxShaped, warnAt('routes', ['routes', name, 'maxShaped']))
    const idle =
      maxShaped !== undefined ? 'maxShaped' : tooLarge === 'pass' ? 'tooLarge' : undefined
    if (shape === undefined && idle !== undefined && Object.keys(parts).length === 0)
      report(
        'routes',
        ['routes', name, idle],
        'has no effect without a shape: the answer passes, however large it is'
      )
  }
  must(['endpoints', 'profile', 'shape'], endpoints.profile.shape)
  for (const { place, part } of partsOf(config)) must([...place, 'shape'], part.shape)
  for (const [name, { shape, input, inputFile, output, status }] of Object.entries(examples)) {
    if (!known.includes(shape))
      report(
        'routes',
        ['examples', name, 'shape'],
        `there is no shape "${shape}".${nearest(shape, known)}`
      )
    if ((input === undefined) === (inputFile === undefined))
      report('routes', ['examples', name], 'needs one of input and inputFile')
    if ((output === undefined) === (status === undefined))
      report('routes', ['examples', name], 'needs one of output and status')
  }
  const named = new Map<string, string>()
  for (const [name, steps] of Object.entries(shapes)) {
    steps.forEach((step, index) =>
      checkStep(step, ['shapes', name, index], {
        shapes,
        report,
        use: (given, path) => must(path, given)
      })
    )
    const cycle = cycleOf(name, shapes)
    if (cycle !== undefined) {
      if (!named.has(cycle)) report('routes', ['shapes', name], `contains itself: ${cycle}`)
      named.set(cycle, name)
      continue
    }
    checkOrder(steps, ['shapes', name], shapes, report)
  }
  for (const name of known)
    if (!used.has(name)) report('routes', ['shapes', name], 'no route uses this shape', 'warning')
}

interface Rule {
  readonly shapes: Shapes
  readonly report: Report
  readonly use: (name: string, path: Path) => void
}

function inner(step: ShapeStep): ReadonlyArray<readonly [Path, readonly ShapeStep[]]> {
  if (step.each !== undefined) return [[['each'], step.each]]
  if (step.at !== undefined) return [[['at', 'operations'], step.at.operations]]
  return step.paging?.each === undefined ? [] : [[['paging', 'each'], step.paging.each]]
}

const outermost = new Set(['open', 'status', 'wrap', 'paging', 'jsonata'])

function checkStep(step: ShapeStep, path: Path, rule: Rule): void {
  const { report } = rule
  if (step.use !== undefined) rule.use(step.use, [...path, 'use'])
  if (step.jsonata !== undefined) {
    const fault = syntaxFault(step.jsonata)
    if (fault !== undefined) report('routes', [...path, 'jsonata'], fault)
  }
  for (const key of ['rename', 'move'] as const) {
    const targets = Object.values(step[key] ?? {})
    const twice = targets.find((target, index) => targets.indexOf(target) < index)
    if (twice !== undefined) report('routes', [...path, key], `two members become "${twice}"`)
  }
  for (const [from, to] of Object.entries(step.move ?? {}))
    if (to.startsWith(`${from}.`))
      report('routes', [...path, 'move', from], 'cannot be moved into itself')
  const statusNames = Object.keys(step.status?.statuses ?? {})
  for (const ok of step.status?.ok ?? [])
    if (statusNames.includes(String(ok)))
      report(
        'routes',
        [...path, 'status', 'statuses', String(ok)],
        'is listed in `ok` too, so it never applies'
      )
  for (const [where, steps] of inner(step)) {
    steps.forEach((each, index) => {
      const at = [...path, ...where, index]
      checkStep(each, at, rule)
      const outer = (['open', 'status', 'wrap', 'paging', 'jsonata'] as const).find(
        operation => each[operation] !== undefined
      )
      if (outer !== undefined)
        report(
          'routes',
          at,
          `\`${outer}\` is for the whole answer: it cannot stand within another operation`
        )
      const brought =
        each.use === undefined || cycleOf(each.use, rule.shapes) !== undefined
          ? undefined
          : expanded(each, rule.shapes)
              .map(({ operation }) => operation)
              .find(operation => outermost.has(operation))
      if (brought !== undefined)
        report(
          'routes',
          [...at, 'use'],
          `the shape "${each.use}" has \`${brought}\`, which is for the whole answer`
        )
    })
  }
}

/** The names of the operations that stand in a step's place. */
function expanded(step: ShapeStep, shapes: Shapes): Array<{ operation: string }> {
  if (step.use !== undefined)
    return (shapes[step.use] ?? []).flatMap(each => expanded(each, shapes))
  return Object.keys(step).map(operation => ({ operation }))
}

/** `open` and `status` come first, `wrap` and `paging` last, also where `use` brings them. */
function checkOrder(steps: readonly ShapeStep[], path: Path, shapes: Shapes, report: Report): void {
  const all = steps.flatMap((step, index) =>
    expanded(step, shapes).map(({ operation }) => ({ operation, index }))
  )
  all.forEach(({ operation, index }, position) => {
    if ((operation === 'open' || operation === 'status') && position > 0)
      report('routes', [...path, index], `\`${operation}\` has to be the first operation`)
    if ((operation === 'wrap' || operation === 'paging') && position < all.length - 1)
      report('routes', [...path, index], `\`${operation}\` has to be the last operation`)
  })
}

/** `a → b → a`, where `use` leads back. */
function cycleOf(start: string, shapes: Shapes): string | undefined {
  const follow = (name: string, way: readonly string[]): string | undefined => {
    if (way.includes(name)) return name === start ? [...way, name].join(' → ') : undefined
    for (const next of usesOf(shapes[name] ?? [])) {
      const found = follow(next, [...way, name])
      if (found !== undefined) return found
    }
    return undefined
  }
  return follow(start, [])
}

function usesOf(steps: readonly ShapeStep[]): string[] {
  return steps.flatMap(step => [
    ...(step.use === undefined ? [] : [step.use]),
    ...inner(step).flatMap(([, within]) => usesOf(within))
  ])
}

function syntaxFault(expression: string): string | undefined {
  try {
    const parsed = (require('jsonata') as typeof import('jsonata'))(expression)
    const long = longLiteral(parsed.ast(), expression)
    if (long === undefined) return undefined
    return `no number holds ${long}: compare with the text "${long}"`
  } catch (error) {
    // JSONata throws plain objects.
    return `is not a valid JSONata expression: ${String((error as { message?: unknown }).message)}`
  }
}

/** An id that JSONata would round: it would compare with another one than is written. */
function longLiteral(node: unknown, expression: string): string | undefined {
  if (typeof node !== 'object' || node === null) return undefined
  const { type, position } = node as { type?: unknown; position?: unknown }
  if (type === 'number' && typeof position === 'number') {
    const written = wholeNumberBefore(expression, position)
    return losesDigits(written) ? written : undefined
  }
  for (const member of Object.values(node)) {
    const found = longLiteral(member, expression)
    if (found !== undefined) return found
  }
  return undefined
}

/** The digits that end there; none for a number with a fraction or an exponent. */
function wholeNumberBefore(expression: string, end: number): string {
  const isDigit = (at: number) => /\d/.test(expression[at] ?? '')
  let start = end
  while (isDigit(start - 1)) start--
  const isPart = /\d(?:\.|[eE][+-]?)$/.test(expression.slice(Math.max(0, start - 3), start))
  return isPart ? '' : expression.slice(start, end)
}

const largeAnswer = 4 * 1024 ** 2
/** Measured with long numbers, which cost most. */
const secondsPerMiB = 0.13

/** Reading an answer is one piece of work. */
function warnOfSize(bytes: number | undefined, warn: (message: string) => void): void {
  if (typeof bytes !== 'number' || bytes <= largeAnswer) return
  const seconds = ((bytes / 1024 ** 2) * secondsPerMiB).toFixed(1)
  warn(`answers of this size hold up all other requests for up to ${seconds} s: use smaller pages`)
}
