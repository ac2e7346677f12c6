/** Rules for the parts of an answer: two of them never want the same place, and all fit the route. */
import type { Report } from './report.ts'
import type { PartConfig } from '../schema/parts.ts'
import type { RoutesConfig } from '../schema/routes.ts'
import type { Path } from '../schema/visit.ts'

export function checkParts(
  {
    routes: {
      routes,
      endpoints: { profile }
    }
  }: { readonly routes: RoutesConfig },
  report: Report
): void {
  for (const [
    name,
    {
      upstream,
      rewrite,
      redirects,
      passAuthorization,
      passCookies,
      passRefusedHeaders,
      setCookies,
      into,
      methods,
      tooLarge,
      path,
      parts
    }
  ] of Object.entries(routes)) {
    const here: Path = ['routes', name]
    const hasParts = Object.keys(parts).length > 0
    if (upstream === undefined) {
      if (!hasParts) report('routes', here, 'needs an upstream, or parts')
      const idle = Object.entries({
        rewrite: rewrite !== undefined,
        into: into !== undefined,
        redirects: redirects !== 'refuse',
        passAuthorization,
        passCookies: passCookies.length > 0,
        passRefusedHeaders: passRefusedHeaders.length > 0,
        setCookies: setCookies.length > 0
      }).find(([, isSet]) => isSet)
      if (idle !== undefined && hasParts)
        report('routes', [...here, idle[0]], 'has no effect without an upstream of the route’s own')
    }
    if (!hasParts) {
      if (into !== undefined) report('routes', [...here, 'into'], 'has no effect without parts')
      continue
    }
    if (methods.some(method => method !== 'GET'))
      report(
        'routes',
        [...here, 'methods'],
        'an answer that is made of parts is read only: set methods: [GET]'
      )
    if (tooLarge === 'pass')
      report(
        'routes',
        [...here, 'tooLarge'],
        'an answer that is made of parts cannot pass unshaped'
      )
    checkPlaces(here, path, parts, into, report)
  }
  checkPlaces(['endpoints', 'profile'], profile.path, profile.parts, undefined, report)
}

function checkPlaces(
  here: Path,
  path: string,
  parts: Readonly<Record<string, PartConfig>>,
  own: string | undefined,
  report: Report
): void {
  const taken: Array<{ readonly by: string; readonly into: string; readonly where: Path }> = []
  if (own !== undefined) {
    taken.push({
      by: 'the route’s own answer',
      into: own,
      where: [...here, 'into']
    })
  }
  for (const [name, { rewrite, into }] of Object.entries(parts)) {
    const place = [...here, 'parts', name]
    if (rewrite.endsWith('/*') && !path.endsWith('/*'))
      report('routes', [...place, 'rewrite'], 'must not end in /*, since the public path does not')
    if (
      rewrite !== '/' &&
      rewrite
        .split('/')
        .slice(1)
        .some(segment => ['', '.', '..'].includes(segment))
    )
      report('routes', [...place, 'rewrite'], 'must not contain empty or dot segments')
    if (into === undefined) continue
    const other = taken.find(
      each => `${each.into}.`.startsWith(`${into}.`) || `${into}.`.startsWith(`${each.into}.`)
    )
    if (other !== undefined) {
      const message = `"${other.into}" is taken by ${other.by}`
      report('routes', [...place, 'into'], message, { also: other.where })
    }
    taken.push({
      by: `the part "${name}"`,
      into,
      where: [...place, 'into']
    })
  }
}
