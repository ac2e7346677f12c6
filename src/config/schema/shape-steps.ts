/** The steps of shapes, with those that `use` inserts. */
import type { ShapeStep } from './shapes.ts'
import { ownMember } from './node.ts'

type Shapes = Readonly<Record<string, readonly ShapeStep[]>>

/**
 * The steps, with each `use` replaced by its shape's steps. A shape within itself is left out: the
 * check of config reports it.
 * @param within names of the shapes that hold the steps
 */
export function flatten(
  steps: readonly ShapeStep[],
  shapes: Shapes,
  within: readonly string[] = []
): ShapeStep[] {
  return steps.flatMap(step => {
    const { use, each, at, paging } = step
    if (use !== undefined) {
      return within.includes(use)
        ? []
        : flatten(ownMember(shapes, use) ?? [], shapes, [...within, use])
    }
    if (each !== undefined) return [{ each: flatten(each, shapes, within) }]
    if (at !== undefined) {
      return [{ at: { path: at.path, operations: flatten(at.operations, shapes, within) } }]
    }
    if (paging?.each !== undefined) {
      return [{ paging: { ...paging, each: flatten(paging.each, shapes, within) } }]
    }
    return [step]
  })
}
