/** Canary: stands for the map, which no part below may import. */
export const app = 'app'

export interface App {
  readonly name: string
}
