/** Bugs for the simulation of membership to find. */

import { type Parts, REAL_PARTS } from "../../simulation/membership/member.ts";
import type { Configuration } from "../../src/cluster/configuration.ts";
import { Announcement } from "../../src/cluster/membership/announcement.ts";
import { Leases } from "../../src/cluster/membership/leases.ts";
import { Membership } from "../../src/cluster/membership/membership.ts";

class CountedFromReceipt extends Leases {
  protected override heldFromMs(): number {
    return this.clock.nowMs();
  }
}

class ManagerAlone extends Leases {
  protected override majorityOf(): number {
    return 1;
  }
}

class Impatient extends Membership {
  protected override announce(configuration: Configuration, nowMs: number): Announcement {
    return new ImpatientAnnouncement(configuration, nowMs);
  }

  // In the time between two renewals most of these leases end.
  protected override mayRenew(): boolean {
    return false;
  }
}

class ImpatientAnnouncement extends Announcement {
  protected override haveLeasesEnded(): boolean {
    return true;
  }
}

class Minority extends Membership {
  protected override hasMajority(): boolean {
    return true;
  }

  protected override announce(configuration: Configuration, nowMs: number): Announcement {
    return new MinorityAnnouncement(configuration, nowMs);
  }
}

class MinorityAnnouncement extends Announcement {
  protected override hasMajority(): boolean {
    return true;
  }
}

class Forgetful extends Membership {
  protected override announce(configuration: Configuration, nowMs: number): Announcement {
    // As if the configuration before this one had been committed.
    const unsettled = (configuration.unsettled ?? []).slice(-1);
    return new Announcement({ ...configuration, unsettled }, nowMs);
  }
}

export const PLANTED: Readonly<Record<string, Parts>> = {
  "a lease counts from when the grant is received": {
    ...REAL_PARTS,
    leases: (options) => new CountedFromReceipt(options),
  },
  "the manager needs no leases": {
    ...REAL_PARTS,
    leases: (options) => new ManagerAlone(options),
  },
  "nobody waits for the leases of the removed": {
    ...REAL_PARTS,
    membership: (options) => new Impatient(options),
  },
  "a minority goes on": {
    ...REAL_PARTS,
    membership: (options) => new Minority(options),
  },
  "a majority of the last configuration is enough": {
    ...REAL_PARTS,
    membership: (options) => new Forgetful(options),
  },
};
