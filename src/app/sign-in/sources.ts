/** The credential sources of a generation, by their kinds. */
import type { Config } from '../../config/schema/config.ts'
import type { SourceConfig } from '../../config/schema/gateway.ts'
import { credentialOf } from '../../config/schema/routes.ts'
import type { CredentialSource } from '../../login/credential-source.ts'
import { createUsersFile } from '../../login/file-users.ts'
import { createLdap } from '../../login/ldap/source.ts'
import { providerOf } from '../../login/oidc/provider.ts'
import { OidcSource } from '../../login/oidc/source.ts'
import { createUpstreamLogin } from '../../login/upstream-login.ts'
import type { Upstream } from '../../proxy/upstream.ts'
import type { Services } from '../../services/services.ts'

interface Needed extends Pick<Services, 'log'> {
  readonly upstream: (name: string) => Upstream
}

/** @returns in the order of the config */
export function createSources(config: Config, services: Needed): CredentialSource[] {
  const sources = Object.entries(config.gateway.login.sources)
  return sources.map(([name, source]) => createSource(name, source, config, services))
}

function createSource(
  name: string,
  source: SourceConfig,
  { users, authorities }: Config,
  { log, upstream }: Needed
): CredentialSource {
  switch (source.kind) {
    case 'users-file':
      return createUsersFile(name, users[source.file] ?? { users: {} })
    case 'ldap': {
      const directory = { ...source, ca: authorities[source.ca ?? ''] }
      return createLdap(name, directory, user =>
        log.warn(
          { event: 'login.ambiguous', source: name, user },
          'sign-in refused: several entries of the directory have this user name'
        )
      )
    }
    case 'oidc':
      return new OidcSource(name, source, providerOf(source))
    case 'upstream-login': {
      const { config, fetchWhole } = upstream(source.upstream)
      const { as, scheme } = credentialOf(config.credential)
      return createUpstreamLogin({
        name,
        config: source,
        send: fetchWhole,
        credentialStyle: as,
        credentialScheme: scheme,
        onFailed: err =>
          log.warn(
            { event: 'logout.source', source: name, err },
            'a sign-in failed after the back-end’s, and the back-end’s session could not be ended'
          )
      })
    }
  }
}
