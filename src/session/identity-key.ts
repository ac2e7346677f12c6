/** The key of all that belongs to a user: sessions, limits, requests in flight. */

declare const brand: unique symbol

/** Only `identityKey` makes one: two credential sources may give the same id to two people. */
export type IdentityKey = string & { readonly [brand]: true }

/** A user as a credential source vouched for them. A session is one. */
export interface VouchedUser {
  /** The name of the credential source. */
  readonly source: string
  readonly identity: { readonly id: string }
}

/** `SOURCE/ID`. Names of sources hold no slash, so that no two users have one key. */
export function identityKey({ source, identity: { id } }: VouchedUser): IdentityKey {
  return `${source}/${id}` as IdentityKey
}
