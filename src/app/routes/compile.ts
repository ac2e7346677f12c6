/**
 * Config's routes as the app needs them: paths with their aliases, upstreams, compiled shapes,
 * credential sources.
 */
import type { Config } from '../../config/schema/config.ts'
import type { BodyMapping } from '../../proxy/body-mapping.ts'
import { ownPaths } from '../../config/schema/own-endpoints.ts'
import {
  mountOf,
  pathsOf,
  profilePlacement,
  queryMapsOf,
  routeSettings,
  timeoutOf,
  upstreamPathOf
} from '../../config/schema/resolved.ts'
import type { RouteConfig } from '../../config/schema/routes.ts'
import type { ContractConfig } from '../../config/schema/contracts.ts'
import { plainCookies, sealedCookies, sealedCookiesOf } from '../../config/schema/set-cookies.ts'
import { type Contract, type ContractRules, createContract } from '../../contract/contract.ts'
import { createEnvelope, type Envelope } from '../../shaping/envelope.ts'
import { readJson } from '../../json/body.ts'
import { compileShape, isWrapped, type Shape } from '../../shaping/shape.ts'
import { type TimeOutOverrides, timeOutsOf } from '../../proxy/time-outs.ts'
import { createRewrite } from '../../proxy/path.ts'
import type { Upstream } from '../../proxy/upstream.ts'
import { compileParts, type Composable } from './compile-parts.ts'
import { logLabels, logMissing } from './response-log.ts'
import { applyShape, checkContract } from './shaped-values.ts'
import type { GenerationServices } from '../generation-services.ts'
import type { Answer } from '../../shaping/answer.ts'
import { refuseLeak } from '../../login/leaked-credential.ts'
import { compileConfiguredAnswer } from '../endpoint-answers.ts'
import { compileProfile } from './compile-profile.ts'
import type { OwnRoute, Route, Shaping } from './route.ts'

export interface Routes {
  readonly login: readonly string[]
  readonly logout: readonly string[]
  readonly refresh: readonly string[]
  readonly check: readonly string[]
  readonly session: {
    readonly session: readonly string[]
    readonly extend: readonly string[]
    readonly list: readonly string[]
    readonly close: readonly string[]
  }
  /** Of config, and the profile. */
  readonly routes: readonly Route[]
}

/** @param yieldToRequests is awaited before each route */
export async function compileRoutes(
  config: Config,
  services: GenerationServices,
  profileAnswer: Answer | undefined,
  yieldToRequests: () => Promise<void>
): Promise<Routes> {
  const compiler = new RouteCompiler(config, services, profileAnswer)
  for (const [name, route] of Object.entries(config.routes.routes)) {
    await yieldToRequests()
    compiler.addRoute(name, route)
  }
  return compiler.finish()
}

/** Collects the routes of one config, with what each needs looked up and compiled once. */
type TargetConfig = TimeOutOverrides & Pick<RouteConfig, 'path' | 'rewrite' | 'timeout'>

class RouteCompiler {
  readonly #config: Config
  readonly #services: GenerationServices
  readonly #profileAnswer: Answer | undefined
  readonly #envelope: Envelope
  readonly #compiled: Route[] = []

  constructor(config: Config, services: GenerationServices, profileAnswer: Answer | undefined) {
    this.#config = config
    this.#services = services
    this.#profileAnswer = profileAnswer
    this.#envelope = createEnvelope(config.gateway.envelope)
  }

  addRoute(name: string, route: RouteConfig): void {
    const { gateway, routes, limits } = this.#config
    const settings = routeSettings(this.#config, name, route)
    const { dialect, errorStatus, maxBody, maxShaped, touch } = settings
    const ownEnvelope =
      dialect === gateway.envelope.dialect
        ? undefined
        : createEnvelope({ ...gateway.envelope, dialect })
    const envelope = ownEnvelope ?? this.#envelope
    const common = {
      name,
      paths: this.#pathsOf(route.path),
      methods: route.methods,
      touch,
      access: route.access,
      ...(ownEnvelope && { envelope: ownEnvelope }),
      errorStatus
    }
    if (route.answer !== undefined) {
      this.#compiled.push({ ...common, ...this.#answerOf(name, route.answer, envelope) })
      return
    }
    const shape = this.#shapeOf(route.shape, envelope)
    const isInEnvelope = isWrapped(routes.shapes[route.shape ?? ''] ?? [], routes.shapes)
    const rules = this.#rulesOf(name, route.contract, isInEnvelope && envelope.dataName)
    const contract = this.#contractOf(name, rules)
    const cookies = this.#cookiesOf(route)
    const parts = this.#partsOf({ ...route, ...cookies }, envelope, maxShaped)
    const shaping: Shaping = {
      shape: body => checkContract(contract, shape === undefined ? body : applyShape(shape, body)),
      shapeNothing: nothing => shape?.apply(nothing) ?? null,
      maxShaped,
      tooLarge: route.tooLarge,
      onIgnored: logLabels(this.#services.log, name),
      ...(parts && { parts })
    }
    if (route.upstream === undefined) {
      if (parts === undefined) return
      this.#compiled.push({ ...common, status: 200, initialValue: () => ({}), shaping })
      return
    }
    const isShaped = shape !== undefined || parts !== undefined
    this.#compiled.push({
      ...common,
      ...(isShaped && { shaping }),
      target: {
        ...this.#target(route, route.upstream),
        maxBody,
        query: queryMapsOf(routes, route),
        body: this.#bodyMappingOf(route.body, envelope, maxShaped),
        ...(!isShaped &&
          contract && {
            observe: (bytes, fields) => contract(() => readJson(bytes, fields, limits.sizes.shape))
          }),
        passGetBody: route.passGetBody,
        passEncodedSlashes: route.passEncodedSlashes,
        ...(route.framedByConsole && { framedBy: ["'self'", ...gateway.server.origins] }),
        passAuthorization: route.passAuthorization,
        ...cookies,
        passRefusedHeaders: route.passRefusedHeaders,
        redirects: route.redirects,
        cachesInBrowser:
          route.cache === 'browser' && route.access !== 'public' && parts === undefined,
        fallback: route.fallback,
        webSocket: route.websocket && { ...route.websocket, touch },
        touchesByStream: route.touch === 'always'
      }
    })
  }

  finish(): Routes {
    const paths = ownPaths(this.#config.routes.endpoints)
    return {
      session: {
        session: this.#pathsOf(paths.session),
        extend: this.#pathsOf(paths.extend),
        list: this.#pathsOf(paths.list),
        close: this.#pathsOf(paths.close)
      },
      login: this.#pathsOf(paths.login),
      refresh: this.#pathsOf(paths.refresh),
      check: this.#pathsOf(paths.check),
      logout: this.#pathsOf(paths.logout),
      routes: [...this.#compiled, this.#profile()]
    }
  }

  #profile(): Route {
    const config = this.#config
    const { profile } = config.routes.endpoints
    const { maxShaped } = routeSettings(config, 'profile', profile)
    return compileProfile(config, {
      paths: this.#pathsOf(profile.path),
      answer: this.#profileAnswer,
      contract: this.#contractOf(
        'profile',
        this.#rulesOf(
          'profile',
          profile.contract,
          profilePlacement(config.routes) === 'data' && this.#envelope.dataName
        )
      ),
      envelope: this.#envelope,
      shape: this.#shapeOf(profile.shape, this.#envelope),
      parts: this.#partsOf(profile, this.#envelope, maxShaped),
      target:
        profile.from === 'upstream' ? this.#target(profile, profile.upstream ?? '') : undefined,
      times: this.#services.sessions.times
    })
  }

  /** An answer that stands in config, without an upstream. */
  #answerOf(
    name: string,
    config: NonNullable<RouteConfig['answer']>,
    { success }: Envelope
  ): Pick<OwnRoute, 'status' | 'initialValue' | 'shaping'> {
    const answer = compileConfiguredAnswer(this.#config, config)
    const { times } = this.#services.sessions
    return {
      status: answer.status,
      initialValue: live => answer.render(live && { ...live, ...times() }),
      shaping: {
        shape: (value, live) => {
          refuseLeak(value, live?.session.credential, `routes.${name}.answer`)
          return success(value, undefined, answer.placement)
        }
      }
    }
  }

  #cookiesOf({ upstream = '', passCookies, setCookies }: RouteConfig) {
    const sealed = sealedCookiesOf(this.#config.routes, upstream)
    const [pass, plain] = [true, false].map(isSealed =>
      passCookies.filter(name => sealed.has(name) === isSealed)
    )
    return {
      passCookies: plain ?? [],
      setCookies: plainCookies(setCookies),
      sealedCookies: { pass: pass ?? [], set: sealedCookies(setCookies) }
    }
  }

  #pathsOf(path: string | undefined): string[] {
    return path === undefined ? [] : pathsOf(this.#config.routes, path)
  }

  /** With the mount. */
  #publicPathsOf(path: string): string[] {
    return this.#pathsOf(path).map(each => mountOf(this.#config) + each)
  }

  #upstreamOf(name: string): Upstream {
    const config = this.#config.routes.upstreams[name]
    if (config === undefined) throw new Error(`there is no upstream "${name}"`)
    return this.#services.upstream(name, config)
  }

  #target(route: TargetConfig, upstreamName: string) {
    const upstream = this.#upstreamOf(upstreamName)
    return {
      upstream,
      upstreamName,
      rewrite: createRewrite(this.#publicPathsOf(route.path), upstreamPathOf(route), upstream.base),
      timeoutMs: timeoutOf(route, upstream.config),
      timeOuts: timeOutsOf(upstream.config, route)
    }
  }

  #shapeOf(name: string | undefined, { success }: Envelope): Shape | undefined {
    if (name === undefined) return undefined
    const { shapes } = this.#config.routes
    return compileShape(shapes[name] ?? [], {
      wrap: success,
      shapes,
      onMissing: logMissing(this.#services.log, name)
    })
  }

  #bodyMappingOf(
    body: RouteConfig['body'],
    envelope: Envelope,
    maxBytes: number
  ): BodyMapping | undefined {
    if (body === undefined) return undefined
    const shape = this.#shapeOf(body.shape, envelope)
    return {
      maxBytes,
      shape: value => (shape === undefined ? value : shape.apply(value)),
      as: body.as
    }
  }

  #rulesOf(
    name: string,
    config: ContractConfig | undefined,
    dataName: string | false
  ): ContractRules | undefined {
    const schema = this.#config.contracts[name]
    if (config === undefined || config.mode === 'off' || schema === undefined) return undefined
    return { schema, mode: config.mode, sample: config.sample, dataName }
  }

  #contractOf(route: string, rules: ContractRules | undefined): Contract | undefined {
    return rules && createContract({ ...rules, route, drift: this.#services.drift })
  }

  #partsOf(route: Composable, envelope: Envelope, maxBytes: number) {
    return compileParts(route, {
      gateway: this.#config.gateway,
      publicPaths: this.#publicPathsOf(route.path),
      maxBytes,
      upstreamOf: name => this.#upstreamOf(name),
      shapePart: name => {
        const shape = this.#shapeOf(name, envelope)
        return body => (shape === undefined ? body : applyShape(shape, body))
      }
    })
  }
}
