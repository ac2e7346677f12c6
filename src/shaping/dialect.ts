/** The interface that every dialect of the envelope implements. */
import type { ErrorCode, GatewayError } from '../errors/errors.ts'

export type Members = Readonly<Record<string, unknown>>

export type Language = 'en' | 'zh'

/** Whom an error is told. */
export interface Reader {
  readonly requestId: string
  readonly language: Language
}

export interface LoginResult {
  /**
   * The kind of sign-in that the console sent (`account`, `mobile`, …); it expects it in the
   * response.
   */
  readonly type: string
  /** The first role. */
  readonly authority: string
}

/**
 * The place of a success's value. `data`: under `data`. `flat`: its members stand beside the code
 * and the message, which win over members of the same name; a value that is not an object stands
 * under `data`. `none`: the value is the whole body, and nothing stands beside it.
 */
export type Placement = 'data' | 'flat' | 'none'

export interface Envelope {
  /** @param extra members beside the value */
  readonly success: (data: unknown, extra?: Members, placement?: Placement) => unknown
  /** @param language of the reader; English without it */
  readonly failure: (error: GatewayError, requestId: string, language?: Language) => Members
  readonly login: (result: LoginResult) => unknown
  /**
   * For `login.refusedStatus: 200`: no `success` member, so that consoles show the sign-in page's
   * own alert.
   */
  readonly loginRefused: (error: GatewayError, type: string, reader: Reader) => Members
  /** The content type of errors. */
  readonly errorType: string
  /** The HTTP status that config sets for an error code; it wins over `errorStatus`. */
  readonly statusOf: (code: ErrorCode) => number | undefined
  /** Members beside the profile's 401. */
  readonly notSignedIn: Members
  /** The member that holds the value; false where its members stand beside the code. */
  readonly dataName: string | false
  /** Whether the profile has all members that Ant Design Pro reads, whatever the user has. */
  readonly fillsUser: boolean
}

/** @param standard replaces the built-in message, unless config has one for the code */
export type MessageOf = (
  error: GatewayError,
  language: Language | undefined,
  standard?: string
) => string
