import type { CheckedConfig, Report } from '../schema/config.ts'
import type { RoutesConfig } from '../schema/routes.ts'
import { flatten, memberOperations, type ShapeStep } from '../schema/shapes.ts'
import type { Path } from '../schema/node.ts'

type Shapes = RoutesConfig['shapes']

export function checkShapes({ routes }: CheckedConfig, report: Report): void {
  const { shapes, paging } = routes
  for (const [name, steps] of Object.entries(shapes)) {
    const ofShape = report.at('shapes', name)
    steps.forEach((step, index) => checkStep(step, paging !== undefined, ofShape.at(index)))
    const cycles: Array<readonly string[]> = []
    flatten([{ use: name }], shapes, [], names => cycles.push(names))
    const cycle = cycles.find(names => names.at(-1) === name)
    if (cycle === undefined) checkOrder(steps, shapes, ofShape)
    else ofShape([], `contains itself: ${cycle.join(' → ')}`)
  }
}

function inner({ each, at, paging }: ShapeStep): readonly [Path, readonly ShapeStep[]] {
  if (each !== undefined) return [['each'], each]
  if (at !== undefined) return [['at', 'operations'], at.operations]
  return [['paging', 'each'], paging?.each ?? []]
}

function checkStep(step: ShapeStep, hasPaging: boolean, report: Report): void {
  if (step.echo !== undefined && !hasPaging) {
    report(['echo'], 'needs `paging` at the top of routes.yaml')
  }
  if (step.nest?.countHeader !== undefined && step.nest.count === undefined) {
    report(['nest', 'countHeader'], 'needs `count`, the member for that number')
  }
  for (const key of ['rename', 'move'] as const) {
    const targets = Object.values(step[key] ?? {})
    const twice = targets.find((target, index) => targets.indexOf(target) < index)
    if (twice !== undefined) report([key], `two members become "${twice}"`)
  }
  for (const key of memberOperations) {
    const names = step[key] ?? []
    const dotted = (Array.isArray(names) ? names : Object.keys(names)).find(name =>
      name.includes('.')
    )
    const message = `"${dotted}" is the name of one member: for a member of an object, use \`at\``
    if (dotted !== undefined) report.warn([key], message)
  }
  const [where, within] = inner(step)
  within.forEach((each, index) => checkStep(each, hasPaging, report.at(...where, index)))
}

const outermost = ['open', 'status', 'wrap', 'paging', 'module'] as const

export function outermostOf(step: ShapeStep): string | undefined {
  return outermost.find(operation => step[operation] !== undefined)
}

function misplacedIn(step: ShapeStep): string | undefined {
  const [, within] = inner(step)
  return within.map(each => outermostOf(each) ?? misplacedIn(each)).find(Boolean)
}

/** Also where `use` brings them. */
function checkOrder(steps: readonly ShapeStep[], shapes: Shapes, report: Report): void {
  const all = steps.flatMap((step, index) =>
    flatten([step], shapes).map(each => ({ step: each, index }))
  )
  all.forEach(({ step, index }, position) => {
    const operation = outermostOf(step)
    if ((operation === 'open' || operation === 'status') && position > 0) {
      report([index], `\`${operation}\` has to be the first operation`)
    }
    if ((operation === 'wrap' || operation === 'paging') && position < all.length - 1) {
      report([index], `\`${operation}\` has to be the last operation`)
    }
    const misplaced = misplacedIn(step)
    if (misplaced === undefined) return
    report(
      [index],
      `\`${misplaced}\` is for the whole response: it cannot stand within an operation`
    )
  })
}
