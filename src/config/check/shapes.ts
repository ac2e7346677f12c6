import type { CheckedConfig, Report } from '../schema/config.ts'
import type { RoutesConfig } from '../schema/routes.ts'
import { flatten, memberOperations, type ShapeStep } from '../schema/shapes.ts'
import type { Path } from '../schema/node.ts'

type Shapes = RoutesConfig['shapes']

export function checkShapes({ routes }: CheckedConfig, report: Report): void {
  const { shapes } = routes
  for (const [name, steps] of Object.entries(shapes)) {
    const ofShape = report.at('shapes', name)
    steps.forEach((step, index) => checkStep(step, routes, ofShape.at(index)))
    const cycles: Array<readonly string[]> = []
    flatten([{ use: name }], shapes, [], names => cycles.push(names))
    const cycle = cycles.find(names => names.at(-1) === name)
    if (cycle === undefined) checkOrder(steps, shapes, ofShape)
    else ofShape([], `contains itself: ${cycle.join(' → ')}`)
  }
}

function inner(step: ShapeStep): ReadonlyArray<readonly [Path, readonly ShapeStep[]]> {
  if (step.each !== undefined) return [[['each'], step.each]]
  if (step.at !== undefined) return [[['at', 'operations'], step.at.operations]]
  return step.paging?.each === undefined ? [] : [[['paging', 'each'], step.paging.each]]
}

const outermost = ['open', 'status', 'wrap', 'paging', 'module'] as const

function checkStep(step: ShapeStep, routes: RoutesConfig, report: Report): void {
  if (step.echo !== undefined && routes.paging === undefined) {
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
  for (const [where, steps] of inner(step)) {
    steps.forEach((each, index) => {
      const ofInner = report.at(...where, index)
      checkStep(each, routes, ofInner)
      checkInner(each, routes.shapes, ofInner)
    })
  }
}

function checkInner(step: ShapeStep, shapes: Shapes, report: Report): void {
  const misplaced = outermostOf(step)
  if (misplaced !== undefined) {
    report([], `\`${misplaced}\` is for the whole response: it cannot stand within an operation`)
  }
  if (step.use === undefined) return
  const brought = flatten([step], shapes).map(outermostOf).find(Boolean)
  if (brought === undefined) return
  const message = `the shape "${step.use}" has \`${brought}\`, which is for the whole response`
  report(['use'], message)
}

export function outermostOf(step: ShapeStep): string | undefined {
  return outermost.find(operation => step[operation] !== undefined)
}

/** `open` and `status` come first, `wrap` and `paging` last, also where `use` brings them. */
function checkOrder(steps: readonly ShapeStep[], shapes: Shapes, report: Report): void {
  const all = steps.flatMap((step, index) =>
    flatten([step], shapes).map(each => ({ operation: outermostOf(each), index }))
  )
  all.forEach(({ operation, index }, position) => {
    if ((operation === 'open' || operation === 'status') && position > 0) {
      report([index], `\`${operation}\` has to be the first operation`)
    }
    if ((operation === 'wrap' || operation === 'paging') && position < all.length - 1) {
      report([index], `\`${operation}\` has to be the last operation`)
    }
  })
}
