/** Names of a config folder that completion offers for a placeholder such as ROUTE. */
import { loadConfig } from '../config/read/load.ts'
import type { Config } from '../config/schema/config.ts'
import { ConfigError } from '../config/schema/faults.ts'
import { mountOf } from '../config/schema/resolved.ts'
import type { Io } from './command.ts'
import type { Candidate } from './complete.ts'
import { presetCandidates } from './presets.ts'

const named = (names: Iterable<string>, about = ''): Candidate[] =>
  [...names].map(value => ({ value, about }))

const readers: Readonly<Record<string, (config: Config) => Candidate[]>> = {
  ROUTE: ({ routes: { routes, endpoints } }) => [
    ...Object.entries(routes).map(([value, { path }]) => ({ value, about: path })),
    { value: 'profile', about: endpoints.profile.path }
  ],
  PATH: config => {
    const { routes, endpoints, aliases } = config.routes
    const typed = (path: string) => mountOf(config) + path.replace(/\*$/, '')
    return [
      ...Object.entries({ ...endpoints, ...routes }).map(([about, { path }]) => ({
        value: typed(path),
        about
      })),
      ...Object.entries(aliases).map(([alias, target]) => ({ value: typed(alias), about: target }))
    ]
  },
  ROLE: ({ routes: { routes }, users }) =>
    named(
      new Set([
        ...Object.values(routes).flatMap(({ access }) =>
          typeof access === 'object' ? access.roles : []
        ),
        ...Object.values(users).flatMap(file =>
          Object.values(file.users).flatMap(({ roles }) => roles)
        )
      ])
    ),
  USER: ({ users }) =>
    Object.values(users).flatMap(file =>
      Object.entries(file.users).map(([value, { roles }]) => ({ value, about: roles.join(', ') }))
    )
}

/** The values of a placeholder in a config; none if it has faults. */
export function valuesOf(placeholder: string, folder: string, { env }: Io): readonly Candidate[] {
  if (placeholder === 'METHOD') {
    return named(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
  }
  if (placeholder === 'PRESET') return presetCandidates()
  const read = Object.hasOwn(readers, placeholder) ? readers[placeholder] : undefined
  if (read === undefined) return []
  try {
    return read(loadConfig(folder, env))
  } catch (error) {
    if (error instanceof ConfigError) return []
    throw error
  }
}
