/** The answers that config writes for the gateway's own endpoints, compiled once. */
import type { AnswerConfig } from '../config/schema/answer.ts'
import type { Config } from '../config/schema/config.ts'
import { type Answer, compileAnswer } from '../shaping/answer.ts'
import type { Envelope } from '../shaping/envelope.ts'

/** An endpoint without an answer in config is not there: it has the usual one. */
export interface EndpointAnswers {
  readonly login?: Answer
  readonly refresh?: Answer
  readonly logout?: Answer
  readonly profile?: Answer
}

export function compileEndpointAnswers(config: Config): EndpointAnswers {
  const { login, logout, profile, refresh } = config.routes.endpoints
  return {
    ...(login.answer && { login: compileConfiguredAnswer(config, login.answer) }),
    ...(logout.answer && { logout: compileConfiguredAnswer(config, logout.answer) }),
    ...(profile.answer && { profile: compileConfiguredAnswer(config, profile.answer) }),
    ...(refresh?.answer && { refresh: compileConfiguredAnswer(config, refresh.answer) })
  }
}

export function compileConfiguredAnswer({ gateway, routes }: Config, answer: AnswerConfig): Answer {
  const { inertToken } = gateway.envelope
  return compileAnswer(answer, { inertToken, permissions: routes.permissions })
}

/** The whole body of a sign-out, and its status. */
export function logoutAnswer({ answers, envelope }: LogoutContext): {
  readonly status: number
  readonly body: unknown
} {
  const { logout } = answers
  if (logout === undefined) return { status: 200, body: envelope.success({}) }
  const body = envelope.success(logout.render(), undefined, logout.placement)
  return { status: logout.status, body }
}

interface LogoutContext {
  readonly answers: EndpointAnswers
  readonly envelope: Envelope
}
