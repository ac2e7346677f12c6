/**
 * The stages that decide by its name whether a header of the client passes to an upstream. Each
 * says so by itself; a header passes where all stages let it.
 */
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { builtByGateway, connectionBound, refusedFamilies } from '../config/schema/header-names.ts'
import { memoized } from '../bounded-map.ts'
import type { TokenNames } from './token-names.ts'

export interface PassingOptions {
  readonly identity: GatewayConfig['identity']
  /** `none`, `bearer`, `cookies` or `header:NAME`. */
  readonly credential: string
  /** Of the upstream: only these headers of the client pass; else all that are not refused. */
  readonly passHeaders?: readonly string[] | undefined
  /** Of the route: names of refused families that pass nevertheless. */
  readonly passRefusedHeaders?: readonly string[]
  /** Never copied from the client, whatever passes otherwise. */
  readonly tokenNames: TokenNames
  /**
   * Whether the response will be shaped. A part of it cannot be shaped, a condition would compare
   * the unshaped response, and decompressing costs more than the network saves.
   */
  readonly shaped: boolean
}

/**
 * A set of kinds of requests, with one bit for each, from the lowest: a change without a body, a
 * read without one, a change with a body, a read with one.
 */
export type Kinds = number

/** The kind of a request, by what headers may depend on. */
export function kindOf(hasBody: boolean, isRead: boolean): Kinds {
  if (hasBody) return isRead ? 0b1000 : 0b0100
  return isRead ? 0b0010 : 0b0001
}

const all: Kinds = 0b1111
const none: Kinds = 0
const withBody: Kinds = 0b1100
const changes: Kinds = 0b0101

/** @returns the kinds of requests in which the header passes; its name is in lower case */
export type PassingStage = (name: string) => Kinds

/**
 * Not those that are bound to one connection, built by the gateway, or trusted by back-ends, and
 * no names with `_`, `.` and the like, which CGI-like back-ends read as `-`.
 */
function trustedStage(reopened: readonly string[] = []): PassingStage {
  return name => {
    const isFree =
      /^[a-z0-9-]+$/.test(name) &&
      !refusedFamilies.test(name) &&
      !connectionBound.has(name) &&
      !builtByGateway.has(name)
    return isFree || reopened.includes(name) ? all : none
  }
}

/** With a list of the upstream, only what it or the route names. */
function listedStage(listed: readonly string[], reopened: readonly string[]): PassingStage {
  return name => (listed.includes(name) || reopened.includes(name) ? all : none)
}

/** Not those in which the upstream is told the user and the credential. */
function tellingStage({ identity, credential }: PassingOptions): PassingStage {
  const names = new Set<string | undefined>([
    identity.id,
    identity.username,
    identity.roles,
    identity.source,
    credential.startsWith('header:') ? credential.slice(7) : undefined
  ])
  return name => (names.has(name) ? none : all)
}

/** Not those that hold the console's own token. */
function tokenStage({ headers }: TokenNames): PassingStage {
  return name => (headers.has(name) ? none : all)
}

/** Before a response is shaped: none that ask for a part, a coding, or whether it has changed. */
function shapedStage(name: string): Kinds {
  switch (name) {
    case 'accept-encoding':
    case 'range':
    case 'if-range':
      return none
    // In a change these say whether it may be made at all (RFC 9110 §13.1).
    case 'if-none-match':
    case 'if-modified-since':
      return changes
    default:
      return all
  }
}

/** A type only with the body that has it. */
function typeStage(name: string): Kinds {
  return name === 'content-type' ? withBody : all
}

/** The stages of a route; one that is not configured is left out. */
export function passingStages(options: PassingOptions): PassingStage[] {
  const { passHeaders, passRefusedHeaders = [], tokenNames, shaped } = options
  return [
    trustedStage(passRefusedHeaders),
    tellingStage(options),
    ...(passHeaders === undefined ? [] : [listedStage(passHeaders, passRefusedHeaders)]),
    ...(tokenNames.headers.size === 0 ? [] : [tokenStage(tokenNames)]),
    ...(shaped ? [shapedStage] : []),
    typeStage
  ]
}

/** All stages in one look-up: each name is decided once. */
export function compilePassing(stages: readonly PassingStage[]): PassingStage {
  return memoized(name => stages.reduce((kinds, stage) => kinds & stage(name), all))
}
