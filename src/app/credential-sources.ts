/** The credential sources of a config, compiled. */
import type { Config } from '../config/schema/config.ts'
import { sourceName } from '../config/schema/gateway.ts'
import { credentialOf } from '../config/schema/routes.ts'
import type { CredentialSource } from '../login/credential-source.ts'
import { createUpstreamLogin } from '../login/upstream-login.ts'
import { createUsersFile } from '../login/users-file.ts'
import type { GenerationServices } from './generation-services.ts'

/** The credential sources, in the order of the config. */
export function createSources(
  { gateway, routes, users }: Config,
  services: GenerationServices
): CredentialSource[] {
  return gateway.login.sources.map(source => {
    const name = sourceName(source)
    if (source.kind === 'users-file') {
      return createUsersFile(name, users[source.file] ?? { users: {} }, source.decides)
    }
    const upstream = routes.upstreams[source.upstream]
    if (upstream === undefined) throw new Error(`there is no upstream "${source.upstream}"`)
    const credential = credentialOf(upstream.credential)
    return createUpstreamLogin({
      name,
      config: source,
      send: services.upstream(source.upstream, upstream).fetchWhole,
      credentialStyle: credential.as,
      credentialScheme: credential.scheme,
      onFailed: err =>
        services.log.warn(
          { event: 'logout.source', source: name, err },
          'a sign-in failed after the back-end’s, and the back-end’s session could not be ended'
        )
    })
  })
}
