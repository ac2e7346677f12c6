/** Checks public paths, and rewrites them to paths of the upstream. */
import { hasParameters, nearerFirst, parametersOf, takes } from '../config/schema/public-path.ts'
import { GatewayError } from '../errors/errors.ts'

// RFC 3986 pchar without ";", plus characters that browsers leave unescaped. "%" is checked below.
const allowed = /^\/[A-Za-z0-9._~!$&'()*+,=:@/%|[\]^-]*$/
const dotSegment = /\/\.(?:\/|$)|\/\.\./
const emptyOrDotSegment = /\/\/|\/\.(?:\/|$)|\/\.\./
/**
 * Escapes that two programs may read as two paths: of a separator, of a control character, of such
 * an escape (also in an overlong UTF-8 form), and of letters, digits, "-", ".", "_", "~", which no
 * client needs to escape (RFC 3986 §2.3).
 */
const doubtfulEscape =
  /%(?:[01][0-9a-f]|7f|2[def]|5c|5f|7e|3[0-9]|4[1-9a-f]|5[0-9a]|6[1-9a-f]|7[0-9a]|25(?:2[3ef5]|3f|5c|[01]|c[01]|e0%25[89]|f0%258))/i
const queryRefused = /[^\x21-\x7e]|#/

/**
 * Refuses targets that two programs could read as two paths, before any decision is based on them.
 * Never repairs them.
 * @param target of the request line
 * @param hidesNearer whether escapes in a path hide a nearer known path
 * @param takesSlashes whether `%2F` may stand in it
 * @throws GatewayError `request.path`
 */
export function checkTarget(
  target: string,
  hidesNearer?: (path: string) => boolean,
  takesSlashes = false
): void {
  const mark = target.indexOf('?')
  const path = mark < 0 ? target : target.slice(0, mark)
  if (!allowed.test(path)) {
    throw new GatewayError('request.path', {
      cause: 'it does not begin with /, or holds a character that no path may hold unescaped'
    })
  }
  if (emptyOrDotSegment.test(path)) {
    throw new GatewayError('request.path', { cause: 'it has an empty or a dot segment' })
  }
  if (path.includes('%')) {
    const rest = takesSlashes ? path.replaceAll(/%2f/gi, '/') : path
    if (doubtfulEscape.test(rest) || dotSegment.test(rest)) {
      throw new GatewayError('request.path', {
        cause: 'it holds an escape that two readers may take for two paths'
      })
    }
    try {
      decodeURIComponent(path)
    } catch (cause) {
      throw new GatewayError('request.path', { cause })
    }
    if (hidesNearer?.(path) === true) {
      throw new GatewayError('request.path', {
        cause: 'it is another spelling of a known path'
      })
    }
  }
  if (mark >= 0 && queryRefused.test(target.slice(mark + 1))) {
    throw new GatewayError('request.path', {
      cause: 'its query holds a character that has to be escaped'
    })
  }
}

export interface Rewrite {
  /**
   * Public target (path, maybe query) → upstream path without query.
   * @throws GatewayError `request.path` for another spelling of the public path
   */
  readonly toUpstream: (target: string) => string
  /** Upstream path → public path; undefined where no public path leads there. */
  readonly toPublic: (path: string) => string | undefined
}

/**
 * @param publicPaths the path of the route and its aliases, as config names them
 * @param upstreamPath the path at the upstream; both end in `/*`, or neither does, and its `:name`
 * segments are among the public path's
 * @param base prefix of every upstream path, without a slash at its end
 */
export function createRewrite(
  publicPaths: readonly string[],
  upstreamPath: string,
  base: string
): Rewrite {
  return [...publicPaths, upstreamPath].some(hasParameters)
    ? rewriteTemplate(publicPaths, upstreamPath, base)
    : rewriteStem(publicPaths, upstreamPath, base)
}

function rewriteStem(publicPaths: readonly string[], upstreamPath: string, base: string): Rewrite {
  const stem = (path: string) => (path.endsWith('/*') ? path.slice(0, -1) : path)
  const upstreamStem = base + stem(upstreamPath)
  const open = upstreamPath.endsWith('/*')
  const publicStems = publicPaths.map(stem)
  const [first = ''] = publicStems
  const nearestFirst = publicStems.toSorted(nearerFirst)
  return {
    toUpstream: target => {
      const mark = target.indexOf('?')
      const path = mark < 0 ? target : target.slice(0, mark)
      for (const publicStem of nearestFirst) {
        if (open ? path.startsWith(publicStem) : path === publicStem) {
          return open ? upstreamStem + path.slice(publicStem.length) : upstreamStem
        }
      }
      throw new GatewayError('request.path')
    },
    toPublic: path => {
      if (!open) return path === upstreamStem ? first : undefined
      const publicPath = path.startsWith(upstreamStem)
        ? first + path.slice(upstreamStem.length)
        : '//'
      // Browsers read `//host/…` as another host.
      return publicPath.startsWith('//') ? undefined : publicPath
    }
  }
}

/** Paths with `:name` segments: what each matched stands in its place at the upstream. */
function rewriteTemplate(
  publicPaths: readonly string[],
  upstreamPath: string,
  base: string
): Rewrite {
  const upstreamTemplate = base + upstreamPath
  const [first = ''] = publicPaths
  const upstreamNames = new Set(parametersOf(upstreamPath))
  const isInvertible =
    parametersOf(first).every(name => upstreamNames.has(name)) &&
    first.endsWith('/*') === upstreamPath.endsWith('/*')
  const nearestFirst = publicPaths.toSorted(nearerFirst)
  return {
    toUpstream: target => {
      const mark = target.indexOf('?')
      const path = mark < 0 ? target : target.slice(0, mark)
      const taking = nearestFirst.find(publicPath => takes(publicPath, path))
      if (taking === undefined) throw new GatewayError('request.path')
      return fill(upstreamTemplate, valuesOf(taking, path))
    },
    toPublic: path =>
      isInvertible && takes(upstreamTemplate, path)
        ? fill(first, valuesOf(upstreamTemplate, path))
        : undefined
  }
}

/** The parts of a target that each `:name`, and the `*`, of a path matched. */
function valuesOf(path: string, target: string): Map<string, string> {
  const segments = target.split('/')
  return new Map(
    path.split('/').flatMap((segment, at): Array<[string, string]> => {
      if (segment === '*') return [['*', segments.slice(at).join('/')]]
      return segment.startsWith(':') ? [[segment, segments[at] ?? '']] : []
    })
  )
}

function fill(path: string, values: ReadonlyMap<string, string>): string {
  return path
    .split('/')
    .map(segment => values.get(segment) ?? segment)
    .join('/')
}
