/** Checks public paths, and rewrites them to paths of the upstream. */
import { nearerFirst } from '../config/schema/public-path.ts'
import { GatewayError } from '../errors/errors.ts'

// RFC 3986 pchar without ";", plus characters that browsers leave unescaped. "%" is checked below.
const allowed = /^\/[A-Za-z0-9._~!$&'()*+,=:@/%|[\]^-]*$/
const dotSegment = /\/\.(?:\/|$)|\/\.\./
const emptyOrDotSegment = /\/\/|\/\.(?:\/|$)|\/\.\./
/**
 * Two programs may read them as two paths: separators, control characters, such an escape (also in
 * overlong UTF-8), and what no client needs to escape (RFC 3986 §2.3).
 */
const doubtfulEscape =
  /%(?:[01][0-9a-f]|7f|2[def]|5c|5f|7e|3[0-9]|4[1-9a-f]|5[0-9a]|6[1-9a-f]|7[0-9a]|25(?:2[3ef5]|3f|5c|[01]|c[01]|e0%25[89]|f0%258))/i
const queryRefused = /[^\x21-\x7e]|#/

/**
 * Refuses, and never repairs, targets that two programs could read as two paths.
 * @param takesSlashes whether `%2F` may stand in it @throws GatewayError `request.path`
 */
export function checkTarget(
  target: string,
  hidesNearer?: (path: string) => boolean,
  takesSlashes = false
): void {
  const mark = target.indexOf('?')
  const path = mark < 0 ? target : target.slice(0, mark)
  if (!allowed.test(path)) {
    throw refused('it does not begin with /, or holds a character that no path may hold unescaped')
  }
  if (emptyOrDotSegment.test(path)) throw refused('it has an empty or a dot segment')
  if (path.includes('%')) {
    const rest = takesSlashes ? path.replaceAll(/%2f/gi, '/') : path
    if (doubtfulEscape.test(rest) || dotSegment.test(rest)) {
      throw refused('it holds an escape that two readers may take for two paths')
    }
    try {
      decodeURIComponent(path)
    } catch (cause) {
      throw refused(cause)
    }
    if (hidesNearer?.(path) === true) throw refused('it is another spelling of a known path')
  }
  if (mark >= 0 && queryRefused.test(target.slice(mark + 1))) {
    throw refused('its query holds a character that has to be escaped')
  }
}

function refused(cause: unknown): GatewayError {
  return new GatewayError('request.path', { cause })
}

export type Rewrite = ReturnType<typeof createRewrite>

/** @param publicPaths also of its aliases @param upstreamPath ends in `/*` if they do */
export function createRewrite(publicPaths: readonly string[], upstreamPath: string, base: string) {
  const [first = ''] = publicPaths
  const there = publicPaths.toSorted(nearerFirst).map(path => mapping(path, base + upstreamPath))
  const back = mapping(base + upstreamPath, first)
  return {
    /** Without query. @throws GatewayError `request.path` for another spelling of the path */
    toUpstream: (target: string): string => {
      const mark = target.indexOf('?')
      const path = mark < 0 ? target : target.slice(0, mark)
      for (const map of there) {
        const mapped = map(path)
        if (mapped !== undefined) return mapped
      }
      throw new GatewayError('request.path')
    },
    /** Undefined where no public path leads there. */
    toPublic: (path: string): string | undefined => {
      const mapped = back(path)
      // Browsers read `//host/…` as another host.
      return mapped?.startsWith('//') === true ? undefined : mapped
    }
  }
}

/** Undefined for paths that `from` does not take, and where `to` has a `:name` that it lacks. */
function mapping(from: string, to: string): (path: string) => string | undefined {
  const segments = from.split('/')
  const names = segments.filter(isParameter)
  const pattern = new RegExp(`^${segments.map(patternOf).join('/')}$`, 's')
  const pieces = to.split('/')
  if (pieces.some(piece => isParameter(piece) && !names.includes(piece))) return () => undefined
  return path => {
    const match = pattern.exec(path)
    if (match === null) return undefined
    const values = pieces.map(piece => {
      const at = names.indexOf(piece)
      return at < 0 ? piece : match[at + 1]
    })
    return values.join('/')
  }
}

function isParameter(segment: string): boolean {
  return segment === '*' || segment.startsWith(':')
}

function patternOf(segment: string): string {
  if (segment === '*') return '(.*)'
  return isParameter(segment) ? '([^/]+)' : RegExp.escape(segment)
}
