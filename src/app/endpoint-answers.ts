/** The answers that config writes for the gateway's own endpoints, compiled once. */
import type { AnswerConfig } from '../config/schema/answer.ts'
import type { Config } from '../config/schema/config.ts'
import { type Answer, compileAnswer } from '../shaping/answer.ts'

/** An endpoint without an answer in config is not there: it has the usual one. */
export interface EndpointAnswers {
  readonly login?: Answer
  readonly refresh?: Answer
}

export function compileEndpointAnswers(config: Config): EndpointAnswers {
  const { login, refresh } = config.routes.endpoints
  return {
    ...(login.answer && { login: compileConfiguredAnswer(config, login.answer) }),
    ...(refresh?.answer && { refresh: compileConfiguredAnswer(config, refresh.answer) })
  }
}

function compileConfiguredAnswer({ gateway, routes }: Config, answer: AnswerConfig): Answer {
  const { inertToken } = gateway.envelope
  return compileAnswer(answer, { inertToken, permissions: routes.permissions })
}
