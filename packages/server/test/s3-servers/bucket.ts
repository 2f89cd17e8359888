import { randomUUID } from 'node:crypto'
import {
  CreateBucketCommand,
  PutBucketVersioningCommand,
  PutObjectLockConfigurationCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import type { S3Server } from './start.ts'

export interface TestBucket {
  name: string
  /** With a prefix, so that tests see what happens beside it. */
  url: string
  /** To look into the bucket and to put things there that the product never would. */
  client: S3Client
}

export interface BucketShape {
  versioned?: boolean
  /** Keeps each version for a day, also after a delete. */
  locked?: boolean
}

/** The product finds credentials as the SDK does; tests hand them over in the environment. */
export function useCredentials({ accessKeyId, secretAccessKey }: S3Server): void {
  process.env.AWS_ACCESS_KEY_ID = accessKeyId
  process.env.AWS_SECRET_ACCESS_KEY = secretAccessKey
  process.env.AWS_EC2_METADATA_DISABLED = 'true'
}

export async function newBucket(server: S3Server, shape: BucketShape = {}): Promise<TestBucket> {
  const { endpoint, accessKeyId, secretAccessKey } = server
  const client = new S3Client({
    endpoint,
    forcePathStyle: true,
    region: 'us-east-1',
    credentials: { accessKeyId, secretAccessKey },
    requestChecksumCalculation: 'WHEN_REQUIRED',
  })
  const name = `tests-${randomUUID()}`
  await client.send(
    new CreateBucketCommand({
      Bucket: name,
      ...(shape.locked && { ObjectLockEnabledForBucket: true }),
    }),
  )
  if (shape.versioned) await setVersioning({ client, name }, 'Enabled')
  if (shape.locked) {
    await client.send(
      new PutObjectLockConfigurationCommand({
        Bucket: name,
        ObjectLockConfiguration: {
          ObjectLockEnabled: 'Enabled',
          Rule: { DefaultRetention: { Mode: 'COMPLIANCE', Days: 1 } },
        },
      }),
    )
  }
  return { name, url: `s3://${name}/lethe`, client }
}

export async function setVersioning(
  { client, name }: Pick<TestBucket, 'client' | 'name'>,
  status: 'Enabled' | 'Suspended',
): Promise<void> {
  await client.send(
    new PutBucketVersioningCommand({ Bucket: name, VersioningConfiguration: { Status: status } }),
  )
}
