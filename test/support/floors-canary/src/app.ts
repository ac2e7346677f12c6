/** Canary: stands for the map, which no part below may import. */
export const app = 'app'
