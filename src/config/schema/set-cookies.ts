/** `setCookies` of a route: which cookies its upstream may set in the browser, and how. */
import { Type } from 'typebox'
import * as s from './primitives.ts'

type SetCookie = string | { readonly name: string; readonly sealed: true }

const cookieName = s.anyText

export const setCookiesSchema = s.list(
  Type.Unsafe<SetCookie>(
    Type.Union(
      [
        cookieName,
        s.closed(
          {
            name: cookieName,
            sealed: Type.Literal(true, {
              description:
                'The browser gets the value encrypted. The upstream gets its own value back where ' +
                '`passCookies` of a route or sign-in names the cookie.'
            })
          },
          'A cookie that only the upstream reads, such as that of a captcha.'
        )
      ],
      {
        expected: 'the name of a cookie, or { name, sealed: true }',
        description: 'A cookie.'
      }
    )
  ),
  'Cookies that the upstream may set in the browser. Others are dropped.'
)

export const nameOfCookie = (each: SetCookie): string =>
  typeof each === 'string' ? each : each.name

/** The names that pass as they are. */
export function plainCookies(setCookies: readonly SetCookie[]): string[] {
  return setCookies.filter(each => typeof each === 'string')
}

export function sealedCookies(setCookies: readonly SetCookie[]): string[] {
  return setCookies.flatMap(each => (typeof each === 'string' ? [] : [each.name]))
}

interface SettingRoute {
  readonly upstream?: string | undefined
  readonly setCookies?: readonly SetCookie[] | undefined
}

/** What the browser keeps sealed for an upstream, by whichever route. */
export function sealedCookiesOf(
  { routes }: { readonly routes: Readonly<Record<string, SettingRoute>> },
  upstream: string
): Set<string> {
  const ofUpstream = Object.values(routes).filter(route => route.upstream === upstream)
  return new Set(ofUpstream.flatMap(({ setCookies = [] }) => sealedCookies(setCookies)))
}
