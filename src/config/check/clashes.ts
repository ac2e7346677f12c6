/** Rules for paths with `:name` segments: one of all paths that match must be the nearest. */
import { ownEndpoints } from '../schema/own-endpoints.ts'
import { contains, hasParameters, overlapOf } from '../schema/public-path.ts'
import type { Path } from '../schema/node.ts'
import type { CheckedConfig, Report } from './report.ts'

interface ServedPath {
  readonly path: string
  readonly segments: readonly string[]
  readonly where: Path
}

/**
 * Reports two paths that take the same request although neither is the nearer one, such as
 * `/users/:id/reset` and `/users/export/*`, unless a third path takes just what both take.
 */
export function checkClashes({ routes }: Pick<CheckedConfig, 'routes'>, report: Report): void {
  const served = servedPaths(routes)
  const templates = served.filter(({ path }) => hasParameters(path))
  const fixed = served.filter(({ path }) => !hasParameters(path))
  for (const [index, template] of templates.entries()) {
    for (const other of [...templates.slice(index + 1), ...fixed]) {
      const overlap = overlapOf(template.segments, other.segments)
      if (overlap === undefined) continue
      const message = clashOf(template.path, other.path, overlap, served)
      if (message !== undefined) report(template.where, message, { also: other.where })
    }
  }
}

function clashOf(
  path: string,
  other: string,
  overlap: string,
  served: readonly ServedPath[]
): string | undefined {
  const [holdsOther, isHeld] = [contains(path, other), contains(other, path)]
  if (path === other || holdsOther !== isHeld) return undefined
  if (holdsOther) return `is the same path as ${other}: use the same names in both`
  if (served.some(each => contains(each.path, overlap) && contains(overlap, each.path))) return
  return (
    `and ${other} both take ${overlap}, and neither is the nearer path: ` +
    `add a route with the path ${overlap}`
  )
}

function servedPaths(routes: CheckedConfig['routes']): ServedPath[] {
  const paths = [
    ...ownEndpoints(routes.endpoints).map(({ section, path }) => ({
      path,
      where: ['endpoints', section, 'path']
    })),
    ...Object.entries(routes.routes).map(([name, { path }]) => ({
      path,
      where: ['routes', name, 'path']
    })),
    ...Object.keys(routes.aliases).map(path => ({ path, where: ['aliases', path] }))
  ]
  return paths.map(({ path, where }) => ({ path, segments: path.split('/'), where }))
}
