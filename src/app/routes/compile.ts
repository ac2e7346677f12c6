/** Config's routes as the app needs them: paths with their aliases, upstreams, compiled shapes. */
import { pathsOf, queryMapsOf, routeSettings } from '../../config/schema/resolved.ts'
import type { RouteConfig } from '../../config/schema/routes.ts'
import { plainCookies, sealedCookies, sealedCookiesOf } from '../../config/schema/set-cookies.ts'
import { readJson } from '../../json/body.ts'
import { refuseLeak } from '../../login/leaked-credential.ts'
import type { BodyMapping } from '../../proxy/body-mapping.ts'
import { createAnswer } from '../../shaping/answer.ts'
import { createEnvelope, type Envelope } from '../../shaping/envelope.ts'
import { isWrapped } from '../../shaping/shape.ts'
import type { Gateway } from '../gateway.ts'
import { createYield } from '../yield.ts'
import { contractOf, responseShapeOf, shapeOf, wayOf } from './compile-common.ts'
import { compileParts } from './compile-parts.ts'
import { compileProfile } from './compile-profile.ts'
import { logLabels } from './response-log.ts'
import type { OwnRoute, Route, Shaping } from './route.ts'

/** Those of config, and the profile. */
export async function compileRoutes(gateway: Gateway): Promise<Route[]> {
  const yieldToRequests = createYield()
  const routes: Route[] = []
  for (const [name, route] of Object.entries(gateway.config.routes.routes)) {
    await yieldToRequests()
    const compiled = compileRoute(gateway, name, route)
    if (compiled !== undefined) routes.push(compiled)
  }
  return [...routes, compileProfile(gateway)]
}

/** @returns undefined for a route without anything to answer */
function compileRoute(gateway: Gateway, name: string, route: RouteConfig): Route | undefined {
  const { config, log } = gateway
  const { routes, limits } = config
  const settings = routeSettings(config, name, route)
  const { dialect, errorStatus, maxBody, maxShaped, touch } = settings
  const isOwnDialect = dialect !== config.gateway.envelope.dialect
  const envelope = isOwnDialect
    ? createEnvelope({ ...config.gateway.envelope, dialect })
    : gateway.envelope
  const common = {
    name,
    paths: pathsOf(routes, route.path),
    methods: route.methods,
    touch,
    access: route.access,
    ...(isOwnDialect && { envelope }),
    errorStatus
  }
  if (route.answer !== undefined) {
    return { ...common, ...answerOf(gateway, name, route.answer, envelope) }
  }
  const { shape, shapeNothing } = responseShapeOf(gateway, name, route.shape, envelope.success)
  const isInEnvelope = isWrapped(routes.shapes[route.shape ?? ''] ?? [], routes.shapes)
  const contract = contractOf(gateway, name, route.contract, isInEnvelope && envelope.dataName)
  const cookies = cookiesOf(gateway, route)
  const composed = { ...route, ...cookies, name, maxBytes: maxShaped }
  const parts = compileParts(gateway, composed, envelope.success)
  const shaping: Shaping = {
    shape: async (body, live, sent) => {
      const shaped = await shape(body, live, sent)
      contract?.(() => shaped)
      return shaped
    },
    shapeNothing,
    maxShaped,
    tooLarge: route.tooLarge,
    onIgnored: logLabels(log, name),
    ...(parts && { parts })
  }
  if (route.upstream === undefined) {
    return parts && { ...common, status: 200, initialValue: () => ({}), shaping }
  }
  const isShaped = route.shape !== undefined || parts !== undefined
  return {
    ...common,
    ...(isShaped && { shaping }),
    target: {
      // Much counts as config has it.
      ...route,
      ...wayOf(gateway, route, route.upstream),
      ...cookies,
      maxBody,
      query: queryMapsOf(routes, route),
      body: bodyMappingOf(gateway, name, route.body, { envelope, maxBytes: maxShaped }),
      ...(!isShaped &&
        contract && {
          observe: (bytes, fields) => contract(() => readJson(bytes, fields, limits.sizes.shape))
        }),
      ...(route.framedByConsole && { framedBy: ["'self'", ...config.gateway.server.origins] }),
      cachesInBrowser:
        route.cache === 'browser' && route.access !== 'public' && parts === undefined,
      touchesByStream: route.touch === 'always'
    }
  }
}

/** An answer that stands in config, without an upstream. */
function answerOf(
  { config, sessions }: Gateway,
  name: string,
  written: NonNullable<RouteConfig['answer']>,
  { success }: Envelope
): Pick<OwnRoute, 'status' | 'initialValue' | 'shaping'> {
  const { status, placement, render } = createAnswer(config, written)
  return {
    status,
    initialValue: live => render(live && { ...live, ...sessions.times() }),
    shaping: {
      shape: (value, live) => {
        refuseLeak(value, live?.session.credential, `routes.${name}.answer`)
        return success(value, undefined, placement)
      }
    }
  }
}

/** Those that pass as they are, and those that the browser keeps sealed. */
function cookiesOf({ config }: Gateway, { upstream = '', passCookies, setCookies }: RouteConfig) {
  const sealed = sealedCookiesOf(config.routes, upstream)
  return {
    passCookies: passCookies.filter(name => !sealed.has(name)),
    setCookies: plainCookies(setCookies),
    sealedCookies: {
      pass: passCookies.filter(name => sealed.has(name)),
      set: sealedCookies(setCookies)
    }
  }
}

function bodyMappingOf(
  gateway: Gateway,
  route: string,
  body: RouteConfig['body'],
  { envelope, maxBytes }: { readonly envelope: Envelope; readonly maxBytes: number }
): BodyMapping | undefined {
  if (body === undefined) return undefined
  const shape = shapeOf(gateway, body.shape, envelope.success)
  return {
    maxBytes,
    shape: (value, user) => shape?.apply(value, { target: '', route, user }) ?? value,
    as: body.as
  }
}
