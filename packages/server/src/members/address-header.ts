/** By which our routes tell better-auth the address of a request; no client's header gets there. */
export const addressHeader = 'x-lethe-address'
