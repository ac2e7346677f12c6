/** The routes of config that have an answer instead of an upstream. */
import type { Config } from '../config/schema/config.ts'
import { pathsOf, routeSettings } from '../config/schema/resolved.ts'
import { createEnvelope } from '../shaping/envelope.ts'
import { compileConfiguredAnswer } from './endpoint-answers.ts'
import type { AnsweredRoute } from './endpoints/answered.ts'

export function compileAnsweredRoutes(config: Config): AnsweredRoute[] {
  const { gateway, routes } = config
  return Object.entries(routes.routes).flatMap(([name, route]) => {
    if (route.answer === undefined) return []
    const { dialect, errorStatus, touch } = routeSettings(config, name, route)
    return [
      {
        name,
        paths: pathsOf(routes, route.path),
        methods: route.methods,
        access: route.access,
        touch,
        answer: compileConfiguredAnswer(config, route.answer),
        envelope: createEnvelope({ ...gateway.envelope, dialect }),
        errorStatus
      }
    ]
  })
}
