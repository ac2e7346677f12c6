/** The steps of shapes, with those that `use` inserts. */
import type { ShapeStep } from './shapes.ts'
import { ownMember } from './node.ts'

type Shapes = Readonly<Record<string, readonly ShapeStep[]>>

/**
 * The steps, with each `use` replaced by its shape's steps. A shape within itself is left out: the
 * check of config reports it.
 * @param within names of the shapes that hold the steps
 * @param onCycle gets these names and that of a shape which is one of them
 */
export function flatten(
  steps: readonly ShapeStep[],
  shapes: Shapes,
  within: readonly string[] = [],
  onCycle?: (names: readonly string[]) => void
): ShapeStep[] {
  const inner = (others: readonly ShapeStep[], names = within) =>
    flatten(others, shapes, names, onCycle)
  return steps.flatMap(step => {
    const { use, each, at, paging } = step
    if (use !== undefined) {
      const names = [...within, use]
      if (!within.includes(use)) return inner(ownMember(shapes, use) ?? [], names)
      onCycle?.(names)
      return []
    }
    if (each !== undefined) return [{ each: inner(each) }]
    if (at !== undefined) {
      return [{ at: { path: at.path, operations: inner(at.operations) } }]
    }
    if (paging?.each !== undefined) {
      return [{ paging: { ...paging, each: inner(paging.each) } }]
    }
    return [step]
  })
}
