import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger'

export const openApiOptions: FastifyDynamicSwaggerOptions = {
  // The dashboard's own API is for its pages.
  hideUntagged: true,
  openapi: {
    openapi: '3.1.0',
    info: {
      title: 'Lethe',
      description: 'Person records and provable erasure for session recording.',
      version: '1.0.0',
    },
    tags: [
      { name: 'persons', description: "The records of the customer's users." },
      { name: 'deletion jobs', description: 'The requests for erasure, and their proof.' },
    ],
    components: {
      securitySchemes: {
        secretKey: {
          type: 'http',
          scheme: 'bearer',
          description: 'A secret key of the project (sk_…), from a backend only.',
        },
      },
    },
    security: [{ secretKey: [] }],
  },
}
